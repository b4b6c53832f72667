// Tracks physical allocations (cuMemCreate): they are charged while they have references or
// mappings.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "cuda_abi.h"

namespace worker {

/// Thread-safe. Functions that return bytes return those that became free. A mapped allocation
/// outlives its handle, and the driver may reuse the handle's number.
class PhysicalMemory {
 public:
  void created(CUmemGenericAllocationHandle handle, std::uint64_t bytes);
  /// One more reference to the allocation that is mapped at the address
  /// (cuMemRetainAllocationHandle).
  void retained(CUmemGenericAllocationHandle handle, std::uint64_t address);
  /// Also says whether this was the last reference.
  std::pair<std::uint64_t, bool> released(CUmemGenericAllocationHandle handle);
  void mapped(CUmemGenericAllocationHandle handle, std::uint64_t address, std::uint64_t bytes);
  std::uint64_t unmapped(std::uint64_t address, std::uint64_t bytes);

 private:
  struct Allocation {
    std::uint64_t bytes = 0;
    unsigned references = 0;
    unsigned mappings = 0;
  };
  struct Mapping {
    std::uint64_t bytes;
    std::uint64_t allocation;
  };
  using Allocations = std::map<std::uint64_t, Allocation>;
  std::uint64_t freed(Allocations::iterator allocation);

  std::mutex mutex_;
  std::uint64_t last_ = 0;
  Allocations allocations_;  ///< numbered in order of their creation
  std::map<CUmemGenericAllocationHandle, std::uint64_t> handles_;  ///< those with references
  std::map<std::uint64_t, Mapping> mappings_;                      ///< by address
};

}  // namespace worker
