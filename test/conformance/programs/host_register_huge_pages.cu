// Memory of huge pages (MAP_HUGETLB) is registered as a whole. Without huge pages in the system
// there is nothing to test.
// conformance: judges=itself
#include "host_register.h"

constexpr std::size_t hugePage = std::size_t{2} << 20;
constexpr int count = 3000;

int main() {
  EXPECT_OK(cudaFree(nullptr));
  void* memory = mmap(nullptr, 2 * hugePage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (memory == MAP_FAILED) return verdict();
  auto* bytes = static_cast<char*>(memory);
  std::memset(bytes, 3, 2 * hugePage);
  EXPECT_OK(cudaHostRegister(memory, 2 * hugePage, 0));
  useRegistered(static_cast<int*>(memory), count);
  EXPECT_OK(cudaHostUnregister(memory));
  int wrong = 0;
  for (std::size_t i = count * sizeof(int); i < 2 * hugePage; ++i) wrong += bytes[i] != 3;
  for (int i = 0; i < count; ++i) wrong += static_cast<int*>(memory)[i] != i + 12;
  EXPECT(wrong == 0);
  EXPECT(munmap(memory, 2 * hugePage) == 0);
  return verdict();
}
