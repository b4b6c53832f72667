// The size of a GPU in 32 bits, and registered host memory, by the symbols of CUDA 2.0 and 4.0.
// conformance: flags=-lcuda judges=itself
#include <sys/mman.h>

#include <vector>

#include "by_name.h"

static void size() {
  unsigned bytes = 0;
  std::size_t all = 0;
  EXPECT_OK(byName("cuDeviceTotalMem", &bytes, CUdevice{0}));
  EXPECT_OK(cuDeviceTotalMem(&all, 0));
  EXPECT(bytes > 0 && bytes <= all);
}

static void registered() {
  constexpr std::size_t kBytes = 1 << 16;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CUdeviceptr address = 0;
  unsigned flags = 0;
  EXPECT_OK(byName("cuMemHostRegister", memory, kBytes, unsigned{CU_MEMHOSTREGISTER_DEVICEMAP}));
  EXPECT_OK(cuMemHostGetFlags(&flags, memory));
  EXPECT((flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0);
  EXPECT(byName("cuMemHostRegister", memory, kBytes, 0u) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_OK(cuMemHostGetDevicePointer(&address, memory, 0));
  EXPECT_OK(cuMemsetD32(address, 0x01020304, kBytes / 4));
  EXPECT_OK(cuCtxSynchronize());
  const std::vector<unsigned> wanted(kBytes / 4, 0x01020304);
  EXPECT(std::memcmp(memory, wanted.data(), kBytes) == 0);
  EXPECT_OK(cuMemHostUnregister(memory));
  EXPECT(cuMemHostUnregister(memory) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  munmap(memory, kBytes);
}

int main() {
  startDriver();
  size();
  registered();
  return verdict();
}
