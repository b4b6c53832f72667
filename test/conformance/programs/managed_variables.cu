// __managed__ variables: the host uses them by name, like the device.
// conformance: judges=itself flags=-lcuda
#include <cuda.h>

#include <cstring>
#include <string>

#include "expect.h"

__managed__ int counter = 5;
__managed__ double table[10'000];
__managed__ int* where;
__device__ __managed__ struct {
  char name[12];
  float weight;
} record = {"begin", 1.5f};
__device__ int ordinary = 3;

__global__ void step() {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 10'000) table[i] = table[i] * 2 + 1;
  if (i != 0) return;
  ++counter;
  *where += 10;
  record.weight += 1;
  record.name[0] = 'B';
}

static bool tableIs(double value) {
  for (double each : table) {
    if (each != value) return false;
  }
  return true;
}

static void run(cudaStream_t stream = nullptr) { step<<<40, 256, 0, stream>>>(); }

static void roundTrips() {
  EXPECT(counter == 5 && record.weight == 1.5f && std::strcmp(record.name, "begin") == 0);
  where = &counter;  // the device follows the host's pointer
  run();
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(counter == 16 && record.weight == 2.5f && std::strcmp(record.name, "Begin") == 0);
  EXPECT(tableIs(1));
  counter = 100;
  for (double& each : table) each = 4;
  run();
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(counter == 111 && tableIs(9));
}

/// Every call that waits for the device shows what the device wrote.
static void waits() {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaEventCreate(&event));
  counter = 0;
  run(stream);
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(counter == 11);
  run(stream);
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT(counter == 22);
  run(stream);
  while (cudaStreamQuery(stream) == cudaErrorNotReady) continue;
  EXPECT(counter == 33);
  int there = 0;
  run();
  EXPECT_OK(cudaMemcpyFromSymbol(&there, ordinary, sizeof there));
  EXPECT(counter == 44 && there == 3);
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaEventDestroy(event));
}

static void graphs() {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  run(stream);
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 3; ++launch) {
    counter = launch * 1000;
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT(counter == launch * 1000 + 11);
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void symbols() {
  void* address = nullptr;
  std::size_t size = 0;
  EXPECT_OK(cudaGetSymbolAddress(&address, counter));
  EXPECT_OK(cudaGetSymbolSize(&size, counter));
  EXPECT(address == &counter && size == sizeof counter);
  const int written = 77;
  EXPECT_OK(cudaMemcpyToSymbol(counter, &written, sizeof written));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(counter == 77);
  counter = 78;
  int read = 0;
  EXPECT_OK(cudaMemcpyFromSymbol(&read, counter, sizeof read));
  EXPECT(read == 78);
  cudaPointerAttributes attributes{};
  EXPECT_OK(cudaPointerGetAttributes(&attributes, &counter));
  EXPECT(attributes.type == cudaMemoryTypeManaged);
}

/// Code of its own: as a module, and as a library.
static void driver() {
  const std::string text =
      ".version 7.0\n.target sm_50\n.address_size 64\n"
      ".visible .global .attribute(.managed) .align 4 .u32 number = 41;\n"
      ".visible .global .align 4 .u32 plain = 1;\n"
      ".visible .entry next() {\n .reg .b32 %r;\n ld.global.u32 %r, [number];\n"
      " add.u32 %r, %r, 1;\n st.global.u32 [number], %r;\n ret;\n}\n";
  CUmodule module = nullptr;
  CUfunction next = nullptr;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  EXPECT(cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS);
  EXPECT(cuModuleGetFunction(&next, module, "next") == CUDA_SUCCESS);
  EXPECT(cuModuleGetGlobal(&address, &size, module, "number") == CUDA_SUCCESS && size == 4);
  auto* number = reinterpret_cast<unsigned*>(address);
  EXPECT(*number == 41);
  EXPECT(cuLaunchKernel(next, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
  EXPECT(*number == 42);
  EXPECT(cuModuleUnload(module) == CUDA_SUCCESS);
  CUlibrary library = nullptr;
  EXPECT(cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
  EXPECT(cuLibraryGetManaged(&address, &size, library, "number") == CUDA_SUCCESS && size == 4);
  EXPECT(*reinterpret_cast<unsigned*>(address) == 41);
  EXPECT(cuLibraryGetManaged(&address, &size, library, "missing") == CUDA_ERROR_NOT_FOUND);
  std::printf("a variable that is not managed: %d\n", cuLibraryGetManaged(&address, &size, library, "plain"));
  EXPECT(cuLibraryUnload(library) == CUDA_SUCCESS);
}

int main() {
  roundTrips();
  waits();
  graphs();
  symbols();
  driver();
  return verdict();
}
