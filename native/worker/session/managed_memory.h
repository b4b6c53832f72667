// Managed memory that moves between the program and the GPU. The program has a memory file at the
// address; the worker has the same file elsewhere, pinned, and memory of the GPU at the address.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "cuda_abi.h"
#include "wire/managed_move.h"

namespace worker {

class ManagedMemory {
 public:
  struct Allocation {
    std::uint64_t bytes = 0;      ///< whole pages
    std::byte* pages = nullptr;   ///< of the memory file, registered with the driver
    CUcontext context = nullptr;  ///< null after its end
    CUdevice device = 0;
    CUstream stream = nullptr;  ///< for its moves; shared by those of the context
    wire::ManagedPlace place = wire::ManagedPlace::none;
  };

  /// Held while memory is allocated, placed, moved or freed, so that none of it ends meanwhile.
  std::mutex mutex;
  std::map<std::uint64_t, Allocation> allocations;  ///< by address
  std::map<CUcontext, CUstream> streams;

  /// The allocation that contains the range; null if none does.
  Allocation* find(std::uint64_t address) { return find(address, address, address); }
  Allocation* find(std::uint64_t address, std::uint64_t begin, std::uint64_t end) {
    const auto found = allocations.find(address);
    if (found == allocations.end() || begin < address || end < begin ||
        end - address > found->second.bytes)
      return nullptr;
    return &found->second;
  }

  void contextEnded(CUcontext context) {
    const std::lock_guard lock(mutex);
    streams.erase(context);
    for (auto& [address, allocation] : allocations) {
      if (allocation.context == context) allocation.context = nullptr;
    }
  }
};

}  // namespace worker
