// Which physical allocations (cuMemCreate) are still held or mapped: only then do they cost.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "cuda_abi.h"

namespace worker {

/// Thread-safe. What returns bytes returns those that are free from now on.
class PhysicalMemory {
 public:
  void created(CUmemGenericAllocationHandle handle, std::uint64_t bytes);
  /// One more reference to an allocation (cuMemRetainAllocationHandle).
  void retained(CUmemGenericAllocationHandle handle);
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
  std::uint64_t freed(std::map<CUmemGenericAllocationHandle, Allocation>::iterator allocation);

  std::mutex mutex_;
  std::map<CUmemGenericAllocationHandle, Allocation> allocations_;
  std::map<std::uint64_t, CUmemGenericAllocationHandle> mappings_;  ///< by address
};

}  // namespace worker
