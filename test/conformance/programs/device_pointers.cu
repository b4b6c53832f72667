// The device pointer of addresses, as Triton asks for it before each launch: only of memory that lives.
// conformance: flags=-lcuda
#include "show_driver.h"

__device__ int variable;
__global__ void writeNowhere(int* address) { *address = 1; }

static void ask(const char* what, CUdeviceptr address) {
  CUdeviceptr found = 77;
  const CUresult result = cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address);
  std::printf("%s: %s%s\n", what, resultName(result), result == CUDA_SUCCESS && found != address ? ", another address" : "");
}

int main() {
  char *device = nullptr, *pooled = nullptr, *pinned = nullptr, *managed = nullptr;
  void* symbol = nullptr;
  SHOW(cudaMalloc(&device, 1000));
  SHOW(cudaMallocAsync(&pooled, 1000, nullptr));
  SHOW(cudaMallocHost(&pinned, 1000));
  SHOW(cudaMallocManaged(&managed, 1000));
  SHOW(cudaGetSymbolAddress(&symbol, variable));
  SHOW(cudaDeviceSynchronize());
  const auto number = [](const void* address) { return reinterpret_cast<CUdeviceptr>(address); };
  ask("device memory", number(device));
  ask("its last byte", number(device) + 999);
  ask("memory of a pool", number(pooled) + 1);
  ask("pinned memory", number(pinned) + 1);
  ask("managed memory", number(managed) + 1);
  ask("a variable", number(symbol));
  ask("a low address", 4096);
  SHOW(cudaFree(device));
  ask("freed memory", number(device));
  SHOW(cudaFreeAsync(pooled, nullptr));
  SHOW(cudaDeviceSynchronize());

  CUcontext context = nullptr, before = nullptr;
  CUdeviceptr other = 0;
  SHOW(cuCtxGetCurrent(&before));
  SHOW(cuCtxCreate(&context, nullptr, 0, 0));
  SHOW(cuMemAlloc(&other, 1000));
  ask("memory of another context", other);
  SHOW(cuCtxSetCurrent(before));
  ask("memory of a context that is not current", other);
  SHOW(cuCtxDestroy(context));
  ask("memory of a context that has ended", other);

  SHOW(cudaMalloc(&device, 1000));
  writeNowhere<<<1, 1>>>(reinterpret_cast<int*>(4096));
  SHOW(cudaDeviceSynchronize());
  ask("device memory after a fault", number(device));
}
