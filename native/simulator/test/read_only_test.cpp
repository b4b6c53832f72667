// Host memory that is registered as read-only. Its pages may be read-only for this process, too.
#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

/// Two rows of device memory to host memory.
CUDA_MEMCPY2D rows(CUdeviceptr source, CUmemorytype kind, void* destination) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = source;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 64;
  copy.Height = 2;
  copy.dstMemoryType = kind;
  copy.dstHost = destination;
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(destination);
  return copy;
}

TEST_CASE("memory that is registered as read-only is read, and nothing writes it") {
  usePrimaryContext();
  static const unsigned constant[2048] = {7};
  void* const fixed = const_cast<unsigned*>(constant);
  const auto address = reinterpret_cast<CUdeviceptr>(fixed);
  OK(DRIVER(cuMemHostRegister_v2)(fixed, sizeof constant, CU_MEMHOSTREGISTER_READ_ONLY));
  CUdeviceptr device = 0;
  unsigned read = 0;
  OK(DRIVER(cuMemAlloc_v2)(&device, 256));
  OK(DRIVER(cuMemcpyDtoD_v2)(device, address, 256));
  OK(DRIVER(cuMemcpyDtoH_v2)(&read, device, 4));
  CHECK(read == 7);
  constexpr auto kRefused = CUDA_ERROR_INVALID_VALUE;
  EXPECT(kRefused, DRIVER(cuMemcpyDtoH_v2)(fixed, device, 256));
  EXPECT(kRefused, DRIVER(cuMemcpyDtoD_v2)(address, device, 256));
  EXPECT(kRefused, DRIVER(cuMemcpy)(address, device, 256));
  EXPECT(kRefused, DRIVER(cuMemsetD8_v2)(address, 1, 256));
  EXPECT(kRefused, DRIVER(cuStreamWriteValue32_v2)(nullptr, address, 1, 0));
  for (const CUmemorytype kind :
       {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED}) {
    const CUDA_MEMCPY2D copy = rows(device, kind, fixed);
    EXPECT(kRefused, DRIVER(cuMemcpy2D_v2)(&copy));
  }
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  OK(DRIVER(cuGraphCreate)(&graph, 0));
  const CUDA_MEMSET_NODE_PARAMS memset{address, 0, 1, 4, 1, 1};
  EXPECT(kRefused, DRIVER(cuGraphAddMemsetNode)(&node, graph, nullptr, 0, &memset, nullptr));
  OK(DRIVER(cuGraphDestroy)(graph));
  CUdeviceptr at = address;
  unsigned value = 1;
  void* reading[] = {&at, &at, &device, &value};
  OK(DRIVER(cuLaunchKernel)(functionOf(kKernels, "add"), 1, 1, 1, 1, 1, 1, 0, nullptr, reading,
                            nullptr));
  OK(DRIVER(cuCtxSynchronize)());
  void* writing[] = {&at, &value};
  OK(DRIVER(cuLaunchKernel)(functionOf(kKernels, "store"), 1, 1, 1, 1, 1, 1, 0, nullptr, writing,
                            nullptr));
  EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, DRIVER(cuCtxSynchronize)());
  CHECK(constant[0] == 7);
}

}  // namespace
