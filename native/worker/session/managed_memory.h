// Managed memory that moves between the program and the GPU. The program has a memory file at the
// address; the worker has the same file elsewhere, pinned, and memory of the GPU at the address.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "driver.h"
#include "native/worker/accounts/stream_account.h"
#include "native/worker/session/gpu_place.h"
#include "wire/managed_move.h"

namespace worker {

class ManagedMemory {
 public:
  struct Allocation {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;     ///< whole pages
    std::byte* pages = nullptr;  ///< of the memory file, registered with the driver
    CUdevice device = 0;
    /// Held while the memory is placed, moved or freed, and while its context ends. Each has its
    /// own: a move must not wait for another memory's place, which may wait for the GPU.
    std::mutex mutex;
    std::atomic<CUcontext> context{
        nullptr};               ///< null after its end. Changes in the order of calls.
    CUstream stream = nullptr;  ///< for its moves; shared by those of the context
    wire::ManagedPlace place = wire::ManagedPlace::none;
    GpuPlace gpu;
  };
  using Pointer = std::shared_ptr<Allocation>;

  /// The session has had the thread of the client that answers page faults.
  std::atomic<bool> answersFaults{false};

  void add(Pointer allocation);
  void remove(std::uint64_t address);
  /// The allocation that begins there; null if none does.
  Pointer find(std::uint64_t address) const;

  /// Opens a stream that waits for no other one, if the context, which is current, has none yet.
  /// Null if the driver refuses.
  CUstream openStream(const Driver& driver, StreamAccount& account, CUcontext context);

  /// Ends all moves of the context's memory. Call it before the driver destroys the context.
  void contextEnds(const Driver& driver, CUcontext context);

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Pointer> allocations_;  ///< by address
  std::mutex streamsMutex_;
  std::map<CUcontext, CUstream> streams_;
};

}  // namespace worker
