// Which atomic operations work on the memory of another GPU, and kernels that use them.
// conformance: judges=itself gpus=2 flags=-lcuda
#include "expect.h"
#include "show_driver.h"

constexpr int kThreads = 1024;

__global__ void count(unsigned* sum, unsigned* most, unsigned* last) {
  atomicAdd(sum, 1u);
  atomicMax(most, threadIdx.x);
  atomicExch(last, 7u);
}

static CUresult ask(unsigned* capabilities, CUatomicOperation operation, CUdevice from, CUdevice to) {
  return cuDeviceGetP2PAtomicCapabilities(capabilities, &operation, 1, from, to);
}

static bool worksOnWords(CUatomicOperation operation) {
  constexpr unsigned wanted = CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_SCALAR_32;
  unsigned alone = 0, beside[2] = {};
  const CUatomicOperation both[] = {CU_ATOMIC_OPERATION_CAS, operation};
  EXPECT(ask(&alone, operation, 0, 1) == CUDA_SUCCESS);
  EXPECT(cuDeviceGetP2PAtomicCapabilities(beside, both, 2, 0, 1) == CUDA_SUCCESS);
  EXPECT(beside[1] == alone);
  return (alone & wanted) == wanted;
}

/// From GPU 0 to memory of GPU 1.
static void kernel() {
  unsigned *memory = nullptr, host[3] = {};
  EXPECT_OK(cudaSetDevice(1));
  EXPECT_OK(cudaMalloc(&memory, sizeof host));
  EXPECT_OK(cudaMemset(memory, 0, sizeof host));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(cudaDeviceEnablePeerAccess(1, 0));
  count<<<4, kThreads>>>(memory, memory + 1, memory + 2);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDefault));
  EXPECT(host[0] == 4 * kThreads && host[1] == kThreads - 1 && host[2] == 7);
  EXPECT_OK(cudaFree(memory));
}

int main() {
  int devices = 0, native = 0;
  unsigned capabilities = 0;
  EXPECT_OK(cudaGetDeviceCount(&devices));
  if (devices < 2) return std::printf("skipped: it needs two GPUs\n"), 0;
  EXPECT(ask(&capabilities, CU_ATOMIC_OPERATION_INTEGER_ADD, 0, 0) != CUDA_SUCCESS);
  EXPECT(ask(&capabilities, CU_ATOMIC_OPERATION_INTEGER_ADD, 0, 99) != CUDA_SUCCESS);
  // It does not tell the capabilities: on two H100 it is 1, and not all of them are there.
  EXPECT_OK(cudaDeviceGetP2PAttribute(&native, cudaDevP2PAttrNativeAtomicSupported, 0, 1));
  const bool add = worksOnWords(CU_ATOMIC_OPERATION_INTEGER_ADD);
  const bool most = worksOnWords(CU_ATOMIC_OPERATION_INTEGER_MAX);
  const bool exchange = worksOnWords(CU_ATOMIC_OPERATION_EXCHANGE);
  EXPECT(native == 0 || native == 1);
  if (add && most && exchange) kernel();
  return verdict();
}
