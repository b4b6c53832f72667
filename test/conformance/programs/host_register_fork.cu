// A child of fork has its own copy of registered private memory, and shares registered shared memory.
// conformance: judges=itself
#include <sys/wait.h>

#include "host_register.h"

constexpr int count = 50'000;

static int inChild(int* memory, int* shared, int* neighbour) {
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += memory[i] != i + 12;
  if (wrong != 0 || *neighbour != 9) return 1;
  for (int i = 0; i < count; ++i) memory[i] = -1;
  *neighbour = 10;
  void* more = std::malloc(300);  // the heap is intact
  std::free(more);
  shared[0] = 77;
  usleep(100'000);
  for (int i = 0; i < count; ++i) wrong += memory[i] != -1;
  return wrong != 0 ? 2 : *neighbour == 10 ? 0 : 3;
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  auto* memory = static_cast<int*>(std::malloc(count * sizeof(int)));
  auto* neighbour = static_cast<int*>(std::malloc(sizeof(int)));
  *neighbour = 9;
  const int file = memfd_create("host-register", 0);
  EXPECT(ftruncate(file, page) == 0);
  void* mapped = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  auto* shared = static_cast<int*>(mapped);
  EXPECT_OK(cudaHostRegister(memory, count * sizeof(int), cudaHostRegisterDefault));
  EXPECT_OK(cudaHostRegister(neighbour, sizeof(int), cudaHostRegisterDefault));
  EXPECT_OK(cudaHostRegister(shared, page, cudaHostRegisterDefault));
  useRegistered(memory, count);
  const pid_t child = fork();
  if (child == 0) _exit(inChild(memory, shared, neighbour));
  for (int i = 0; i < count; ++i) memory[i] = 4;  // the child must not see this
  addToAll<<<(count + 255) / 256, 256>>>(memory, count, 1);
  EXPECT_OK(cudaDeviceSynchronize());
  *neighbour = 11;
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += memory[i] != 5;
  EXPECT(wrong == 0 && *neighbour == 11 && shared[0] == 77);
  addToAll<<<1, 32>>>(shared, 1, 1);  // the registrations of the parent live on
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(shared[0] == 78);
  EXPECT_OK(cudaHostUnregister(memory));
  EXPECT_OK(cudaHostUnregister(neighbour));
  EXPECT_OK(cudaHostUnregister(shared));
  EXPECT(memory[count - 1] == 5);
  std::free(memory);
  std::free(neighbour);
  return verdict();
}
