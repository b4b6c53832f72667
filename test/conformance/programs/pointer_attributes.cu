// What is known about a pointer: device memory, pinned memory, the inside of an allocation, memory that CUDA never saw.
// conformance: flags=-lcuda
#include <cstdlib>

#include "show_driver.h"

static void show(const char* what, const void* p) {
  cudaPointerAttributes attributes = {};
  std::printf("%s: %s", what, resultName(cudaPointerGetAttributes(&attributes, p)));
  std::printf(", type %d, device %d, device pointer %s, host pointer %s\n", attributes.type,
              attributes.type == cudaMemoryTypeUnregistered ? 0 : attributes.device,
              attributes.devicePointer == nullptr ? "null" : yesNo(attributes.devicePointer == p),
              attributes.hostPointer == nullptr ? "null" : yesNo(attributes.hostPointer == p));
}

static void range(const char* what, const void* p) {
  CUdeviceptr start = 0;
  std::size_t size = 0;
  const CUresult result = cuMemGetAddressRange(&start, &size, reinterpret_cast<CUdeviceptr>(p));
  std::printf("range of %s: %s", what, resultName(result));
  if (result == CUDA_SUCCESS) std::printf(", %zu bytes, offset %zu", size, std::size_t(reinterpret_cast<CUdeviceptr>(p) - start));
  std::printf("\n");
}

int main() {
  char *d = nullptr, *pinned = nullptr, *ordinary = static_cast<char*>(std::malloc(100)), stack = 0;
  SHOW(cudaMalloc(&d, 1000));
  SHOW(cudaMallocHost(&pinned, 2000));
  show("device", d);
  show("inside device memory", d + 999);
  show("pinned", pinned);
  show("inside pinned memory", pinned + 1500);
  show("malloc", ordinary);
  show("stack", &stack);
  show("null", nullptr);
  range("device memory", d);
  range("inside device memory", d + 77);
  range("pinned", pinned + 5);
  range("stack", &stack);
  unsigned type = 0, mapped = 7;
  CUdeviceptr start = 0;
  std::size_t size = 0;
  CUcontext context = nullptr, current = nullptr;
  const CUdeviceptr inside = reinterpret_cast<CUdeviceptr>(d + 10);
  SHOW(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
  SHOW(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, inside));
  SHOW(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside));
  SHOW(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside));
  SHOW(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, inside));
  SHOW(cuCtxGetCurrent(&current));
  std::printf("type %u, start %s, size %zu, mapped %u, current context %s\n", type, yesNo(start == inside - 10), size, mapped & 1,
              yesNo(context == current));
  SHOW(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&stack)));
  SHOW(cudaFree(d + 1));
  SHOW(cudaFree(pinned));
  SHOW(cudaFree(d));
  show("freed", d);
  SHOW(cudaFreeHost(ordinary));
  SHOW(cudaFreeHost(pinned));
  SHOW(cudaGetLastError());
  std::free(ordinary);
}
