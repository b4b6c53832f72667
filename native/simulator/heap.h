// Heap of malloc in kernels: one allocation of a context, divided among the kernels' threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

namespace simulator {

/// Thread-safe: called by all threads of all kernels of a context.
class Heap {
 public:
  struct Memory {
    std::uint64_t begin = 0;  ///< 0: none
    std::uint64_t size = 0;
  };

  /// `provide` returns the memory that the heap divides. The first allocate() calls it.
  explicit Heap(std::function<Memory()> provide) : provide_(std::move(provide)) {}

  /// Returns 0 if no free range is large enough. Addresses are multiples of 16.
  std::uint64_t allocate(std::uint64_t bytes);
  /// Takes the memory now. False if there is none.
  bool prepare();
  /// Ignores addresses that allocate() has not returned.
  void release(std::uint64_t address);
  /// Clears all records. The memory is freed with the context.
  void clear();

 private:
  bool reserve();
  void addFree(std::uint64_t begin, std::uint64_t size);
  void removeFree(std::map<std::uint64_t, std::uint64_t>::iterator range);

  const std::function<Memory()> provide_;
  std::mutex mutex_;
  bool reserved_ = false;
  std::map<std::uint64_t, std::uint64_t> free_;  ///< begin -> size; adjacent ranges are merged
  std::set<std::pair<std::uint64_t, std::uint64_t>> bySize_;  ///< (size, begin) of the free ranges
  std::unordered_map<std::uint64_t, std::uint64_t> allocated_;  ///< begin -> size, rounded up
};

}  // namespace simulator
