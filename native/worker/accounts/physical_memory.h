// Tracks physical allocations (cuMemCreate): they are charged while they have references or
// mappings, or descriptors of programs lead to them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "cuda_abi.h"

namespace worker {

/// Thread-safe. Functions that return bytes return those that became free. A mapped allocation
/// outlives its handle, and the driver may reuse the handle's number.
class PhysicalMemory {
 public:
  void created(CUmemGenericAllocationHandle handle, std::uint64_t bytes);
  /// The memory is another worker's, which is charged for it. `companion` is destroyed with the
  /// allocation.
  void imported(CUmemGenericAllocationHandle handle, std::shared_ptr<void> companion);
  /// One more handle of an allocation that is held.
  void importedAgain(CUmemGenericAllocationHandle handle, std::uint64_t number);

  struct Held {
    std::uint64_t number;  ///< of the allocation; never given again
    std::uint64_t bytes;
  };
  /// The allocation stays charged until letGo(). Empty for an unknown handle and imported memory.
  std::optional<Held> hold(CUmemGenericAllocationHandle handle);
  bool holdAgain(std::uint64_t number);
  std::uint64_t letGo(std::uint64_t number);
  /// Calls `end` under the lock when the held allocation becomes free. The first call counts.
  void onEnd(std::uint64_t number, std::function<void()> end);

  /// One more reference to the allocation that is mapped at the address
  /// (cuMemRetainAllocationHandle). False if none is.
  bool retained(CUmemGenericAllocationHandle handle, std::uint64_t address);
  /// Also says whether this was the handle's last reference.
  std::pair<std::uint64_t, bool> released(CUmemGenericAllocationHandle handle);
  void mapped(CUmemGenericAllocationHandle handle, std::uint64_t address, std::uint64_t bytes);
  std::uint64_t unmapped(std::uint64_t address, std::uint64_t bytes);
  /// The allocation is mapped into an array of the context (cuMemMapArrayAsync). It counts as
  /// mapped until the array ends: what is unmapped in stream order is not followed.
  void mappedInto(CUmemGenericAllocationHandle handle, const void* array, const void* context);
  std::uint64_t arrayEnded(const void* array);
  /// All arrays of the context have ended.
  std::uint64_t arraysEnded(const void* context);

 private:
  struct Allocation {
    std::uint64_t bytes = 0;
    unsigned references = 0;
    unsigned mappings = 0;
    unsigned holds = 0;
    bool imported = false;
    std::shared_ptr<void> companion;
    std::function<void()> end;
  };
  struct Handle {
    std::uint64_t allocation;
    unsigned references;
  };
  struct Mapping {
    std::uint64_t bytes;
    std::uint64_t allocation;
  };
  struct Array {
    const void* context;
    std::set<std::uint64_t> allocations;
  };
  using Allocations = std::map<std::uint64_t, Allocation>;
  using Arrays = std::map<const void*, Array>;
  void refer(CUmemGenericAllocationHandle handle, std::uint64_t number);
  std::uint64_t freed(Allocations::iterator allocation);
  std::uint64_t ended(Arrays::iterator array);

  std::mutex mutex_;
  std::uint64_t last_ = 0;
  Allocations allocations_;                                 ///< numbered in order of their creation
  std::map<CUmemGenericAllocationHandle, Handle> handles_;  ///< those with references
  std::map<std::uint64_t, Mapping> mappings_;               ///< by address
  Arrays arrays_;                                           ///< with mapped memory
};

}  // namespace worker
