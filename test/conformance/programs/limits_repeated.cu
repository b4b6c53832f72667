// Limits are asked for again and again: each answer is that of the last setting, by whichever
// thread, and of the last reset.
// conformance: judges=itself
#include <thread>

#include "expect.h"

constexpr std::size_t kMiB = std::size_t{1} << 20;

static std::size_t limit(cudaLimit which) {
  std::size_t value = 0, again = 0;
  EXPECT_OK(cudaDeviceGetLimit(&value, which));
  EXPECT_OK(cudaDeviceGetLimit(&again, which));
  EXPECT(value == again);
  return value;
}

/// What the driver makes of it.
static std::size_t set(cudaLimit which, std::size_t value) {
  EXPECT_OK(cudaDeviceSetLimit(which, value));
  const std::size_t made = limit(which);
  EXPECT(made >= value);
  return made;
}

static void check(cudaLimit which) {
  EXPECT_OK(cudaDeviceReset());
  const std::size_t first = limit(which);
  const std::size_t larger = set(which, first + 8 * kMiB);
  std::size_t largest = 0;
  std::thread([&] {
    EXPECT(limit(which) == larger);
    largest = set(which, larger + 8 * kMiB);
  }).join();
  EXPECT(limit(which) == largest);
  EXPECT_OK(cudaDeviceReset());
  EXPECT(limit(which) == first);
}

int main() {
  check(cudaLimitPrintfFifoSize);
  check(cudaLimitMallocHeapSize);
  for (int i = 0; i < 3; ++i) set(cudaLimitStackSize, 2048 + 1024 * i);
  return verdict();
}
