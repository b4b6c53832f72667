// Queries about pointers need no current context: a library asks where memory lies before it knows
// which context to use.
// conformance: judges=itself flags=-lcuda
#include <cuda.h>

#include <thread>

#include "expect.h"

namespace {

struct Answers {
  CUresult status;
  unsigned type = 77;
  int ordinal = 77;
};

Answers ask(const void* pointer) {
  Answers answers;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* data[] = {&answers.type, &answers.ordinal};
  answers.status = cuPointerGetAttributes(2, names, data, reinterpret_cast<CUdeviceptr>(pointer));
  return answers;
}

}  // namespace

int main() {
  static int plain;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  const Answers early = ask(&plain);
  EXPECT(early.status == CUDA_SUCCESS && early.type == 0 && early.ordinal == -2);
  cudaPointerAttributes attributes{};
  EXPECT_OK(cudaPointerGetAttributes(&attributes, &plain));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);

  int *device = nullptr, *pinned = nullptr;
  EXPECT_OK(cudaMalloc(&device, sizeof *device));
  EXPECT_OK(cudaMallocHost(&pinned, sizeof *pinned));
  CUcontext current = nullptr;
  EXPECT(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr);
  std::thread([&] {
    CUcontext none = nullptr, owner = nullptr;
    EXPECT(cuCtxGetCurrent(&none) == CUDA_SUCCESS && none == nullptr);
    EXPECT(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT,
                                 reinterpret_cast<CUdeviceptr>(device)) == CUDA_SUCCESS);
    EXPECT(owner == current);
    const Answers ofDevice = ask(device), ofPinned = ask(pinned), ofPlain = ask(&plain);
    EXPECT(ofDevice.status == CUDA_SUCCESS && ofDevice.type == CU_MEMORYTYPE_DEVICE);
    EXPECT(ofPinned.status == CUDA_SUCCESS && ofPinned.type == CU_MEMORYTYPE_HOST);
    EXPECT(ofPlain.status == CUDA_SUCCESS && ofPlain.type == 0);
  }).join();
  return verdict();
}
