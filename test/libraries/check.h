// Shared by the library tests: buffers, random numbers, and cases that run several times and are
// compared with the host's result.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

/// Ends the program with a message if a call fails: later results would not be valid.
inline void must(cudaError_t result, const char* call, int line) {
  if (result == cudaSuccess) return;
  std::printf("line %d: %s: %s\n", line, call, cudaGetErrorName(result));
  std::exit(2);
}
#define MUST(...) must(__VA_ARGS__, #__VA_ARGS__, __LINE__)

/// SplitMix64: the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }

 private:
  std::uint64_t state_;
};

template <class T>
class Device {
 public:
  explicit Device(std::size_t count) : count_(count) {
    MUST(cudaMalloc(&data_, count * sizeof(T)));
  }
  explicit Device(const std::vector<T>& values) : Device(values.size()) {
    MUST(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  Device(const Device&) = delete;
  ~Device() { cudaFree(data_); }
  T* data() const { return data_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + count_; }
  std::size_t size() const { return count_; }
  /// A byte pattern that no result has, so that elements without a result are noticed.
  void spoil() { MUST(cudaMemset(data_, 0xa5, count_ * sizeof(T))); }
  std::vector<T> read(std::size_t count) const {
    std::vector<T> values(count);
    MUST(cudaMemcpy(values.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// Memory for algorithms with a size query, like those of CUB.
template <class Algorithm>
void withStorage(Algorithm algorithm) {
  std::size_t bytes = 0;
  MUST(algorithm(nullptr, bytes));
  Device<std::uint8_t> storage(bytes == 0 ? 1 : bytes);
  MUST(algorithm(storage.data(), bytes));
}

class Cases {
 public:
  /// Arguments: repetitions, a factor for the numbers of elements in percent.
  Cases(int count, char** arguments) {
    if (count > 1) repetitions_ = std::atoi(arguments[1]);
    if (count > 2) percent_ = std::strtoul(arguments[2], nullptr, 10);
  }
  std::size_t elements(std::size_t usual) const { return usual * percent_ / 100 + 1; }
  int repetitions() const { return repetitions_; }

  /// Runs `run` several times and compares its results with `expected`, byte by byte.
  template <class T, class Run>
  void check(const char* name, const std::vector<T>& expected, Run run) {
    for (int i = 0; i < repetitions_; ++i) {
      const std::vector<T> got = run();
      MUST(cudaDeviceSynchronize());
      if (got.size() != expected.size()) {
        fail(name, i, "%zu elements instead of %zu", got.size(), expected.size());
        return;
      }
      for (std::size_t at = 0; at < got.size(); ++at) {
        if (std::memcmp(&got[at], &expected[at], sizeof(T)) == 0) continue;
        fail(name, i, "element %zu of %zu is wrong", at, got.size());
        return;
      }
    }
    ++passed_;
  }

  /// Prints the counts. Returns the exit status of the program.
  int close() const {
    std::printf("%d passed, %d failed\n", passed_, failed_);
    return failed_ == 0 ? 0 : 1;
  }

 private:
  void fail(const char* name, int run, const char* format, std::size_t a, std::size_t b) {
    ++failed_;
    std::printf("%s, run %d: ", name, run + 1);
    std::printf(format, a, b);
    std::printf("\n");
  }

  int repetitions_ = 1, passed_ = 0, failed_ = 0;
  std::size_t percent_ = 100;
};
