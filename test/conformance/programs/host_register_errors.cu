// What registration refuses, and the questions about registered memory.
// conformance: judges=itself
#include "host_register.h"

int main() {
  EXPECT_OK(cudaFree(nullptr));
  auto* memory = static_cast<char*>(std::aligned_alloc(page, 16 * page));
  std::memset(memory, 1, 16 * page);
  EXPECT(cudaHostRegister(nullptr, page, 0) == cudaErrorInvalidValue);
  EXPECT(cudaHostRegister(memory, 0, 0) == cudaErrorInvalidValue);
  EXPECT(cudaHostRegister(memory, page, 1 << 20) == cudaErrorInvalidValue);
  EXPECT(cudaHostUnregister(memory) == cudaErrorHostMemoryNotRegistered);
  EXPECT_OK(cudaHostRegister(memory + page, 4 * page, cudaHostRegisterPortable));
  EXPECT(cudaHostRegister(memory + page, 4 * page, 0) == cudaErrorHostMemoryAlreadyRegistered);
  SHOW(cudaHostRegister(memory, 4 * page, 0));
  SHOW(cudaHostRegister(memory + 2 * page, page, 0));
  SHOW(cudaHostRegister(memory + 4 * page, 4 * page, 0));
  SHOW(cudaHostUnregister(memory + 2 * page));
  SHOW(cudaHostUnregister(memory));
  SHOW(cudaHostUnregister(nullptr));
  SHOW(cudaFreeHost(memory + page));
  unsigned flags = 99;
  std::printf("flags: %s\n", resultName(cudaHostGetFlags(&flags, memory + page)));
  std::printf("flags %u\n", flags);
  void* device = nullptr;
  EXPECT_OK(cudaHostGetDevicePointer(&device, memory + 2 * page + 5, 0));
  EXPECT(device == memory + 2 * page + 5);
  SHOW(cudaHostGetDevicePointer(&device, memory + 5 * page, 0));
  EXPECT_OK(cudaHostUnregister(memory + page));
  EXPECT(cudaHostUnregister(memory + page) == cudaErrorHostMemoryNotRegistered);

  char* pinned = nullptr;
  char* onDevice = nullptr;
  EXPECT_OK(cudaMallocHost(&pinned, 4 * page));
  EXPECT_OK(cudaMalloc(&onDevice, 4 * page));
  SHOW(cudaHostRegister(pinned + page, page, 0));
  SHOW(cudaHostUnregister(pinned));
  SHOW(cudaHostRegister(onDevice, page, 0));
  SHOW(cudaHostUnregister(onDevice));
  SHOW(cudaHostRegister(memory, page, cudaHostRegisterIoMemory));
  EXPECT_OK(cudaFreeHost(pinned));
  EXPECT_OK(cudaFree(onDevice));

  // Memory that is not there, or not all of it.
  void* hole = mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(static_cast<char*>(hole) + 2 * page, page);
  EXPECT(cudaHostRegister(hole, 4 * page, 0) != cudaSuccess);
  EXPECT(cudaHostRegister(static_cast<char*>(hole) + 2 * page, page, 0) != cudaSuccess);
  SHOW(cudaHostRegister(hole, 4 * page, 0));
  munmap(hole, 4 * page);
  cudaGetLastError();
  int wrong = 0;
  for (std::size_t i = 0; i < 16 * page; ++i) wrong += memory[i] != 1;
  EXPECT(wrong == 0);
  std::free(memory);
  return verdict();
}
