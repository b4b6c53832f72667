// Registration of private memory: the heap, anonymous mappings, static variables; the content stays, also when the registration ends, and the pages are the program's again.
// conformance: judges=itself
#include <cstdio>

#include "host_register.h"

static int zeroes[3000];
static int values[3000] = {1, 2, 3};

static void roundTrip(int* data, int count, unsigned flags) {
  data[0] = 17;
  data[count - 1] = 18;
  EXPECT_OK(cudaHostRegister(data, count * sizeof(int), flags));
  EXPECT(data[0] == 17 && data[count - 1] == 18);
  useRegistered(data, count);
  cudaPointerAttributes attributes{};
  EXPECT_OK(cudaPointerGetAttributes(&attributes, data));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.devicePointer == data);
  EXPECT_OK(cudaHostUnregister(data));
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += data[i] != i + 12;
  EXPECT(wrong == 0);
  EXPECT_OK(cudaPointerGetAttributes(&attributes, data));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
}

/// Megabytes of memory that this process has, the files of shared memory included.
static long residentMegabytes() {
  long total = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  EXPECT(file != nullptr && std::fscanf(file, "%ld %ld", &total, &resident) == 2);
  std::fclose(file);
  return resident * static_cast<long>(page) / (1 << 20);
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  auto* small = static_cast<int*>(std::malloc(1000 * sizeof(int)));
  auto* large = static_cast<int*>(std::malloc(1'000'000 * sizeof(int)));
  void* mapped = mmap(nullptr, 64 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  roundTrip(small, 1000, cudaHostRegisterDefault);
  roundTrip(large, 1'000'000, cudaHostRegisterPortable);
  roundTrip(static_cast<int*>(mapped), 64 * 1024, cudaHostRegisterMapped);
  roundTrip(zeroes, 3000, cudaHostRegisterPortable | cudaHostRegisterMapped);
  roundTrip(values, 3000, cudaHostRegisterDefault);
  roundTrip(large, 1'000'000, cudaHostRegisterDefault);  // again
  std::free(small);
  std::free(large);
  munmap(mapped, 64 * page);

  // Only a part of a mapping, and reallocation afterwards.
  auto* grown = static_cast<int*>(std::malloc(2'000'000));
  roundTrip(grown + 10'001, 100'000, cudaHostRegisterDefault);
  grown = static_cast<int*>(std::realloc(grown, 40'000'000));
  EXPECT(grown != nullptr && grown[10'001] == 12 && grown[110'000] == 99'999 + 12);
  std::free(grown);

  // The program's own doings while the memory is registered.
  constexpr std::size_t size = 16 * page;
  void* first = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* words = static_cast<int*>(first);
  words[0] = 1, words[size / 4 - 1] = 2;
  EXPECT_OK(cudaHostRegister(first, size, cudaHostRegisterDefault));
  void* moved = mremap(first, size, 2 * size, MREMAP_MAYMOVE, nullptr);
  if (moved == MAP_FAILED) moved = mremap(first, size, size, MREMAP_MAYMOVE, nullptr);
  EXPECT(moved != MAP_FAILED);
  words = static_cast<int*>(moved);
  EXPECT(words[0] == 1 && words[size / 4 - 1] == 2);
  EXPECT_OK(cudaHostUnregister(first));
  EXPECT(words[0] == 1 && words[size / 4 - 1] == 2);
  words[0] = 3;
  munmap(moved, size);

  void* gone = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_OK(cudaHostRegister(gone, size, cudaHostRegisterDefault));
  munmap(gone, size);
  EXPECT_OK(cudaHostUnregister(gone));

  // A context takes its registrations with it.
  auto* outliving = static_cast<int*>(std::malloc(100'000 * sizeof(int)));
  EXPECT_OK(cudaHostRegister(outliving, 100'000 * sizeof(int), cudaHostRegisterDefault));
  useRegistered(outliving, 100'000);
  EXPECT_OK(cudaDeviceReset());
  EXPECT(outliving[99'999] == 99'999 + 12);
  roundTrip(outliving, 100'000, cudaHostRegisterDefault);
  std::free(outliving);

  // The memory is freed: many registrations in turn do not add up.
  const long before = residentMegabytes();
  for (int i = 0; i < 20; ++i) {
    constexpr std::size_t bytes = 32 << 20;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_OK(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
    static_cast<char*>(memory)[bytes - 1] = 1;
    EXPECT_OK(cudaHostUnregister(memory));
    munmap(memory, bytes);
  }
  EXPECT(residentMegabytes() - before < 100);
  return verdict();
}
