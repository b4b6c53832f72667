// Memory of cuMemAlloc that is freed in stream order (cuMemFreeAsync).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "driver.h"
#include "native/worker/accounts/quota.h"
#include "native/worker/accounts/slack_account.h"
#include "native/worker/memory/movable_memory.h"

namespace worker {

/// Thread-safe. The memory stays charged until settle() finds that its stream has come to the free.
/// The driver's callback cannot free it: callbacks may not call the driver.
class PendingFrees {
 public:
  PendingFrees(Quota& quota, MovableMemory& memory, SlackAccount& slack)
      : quota_(quota), memory_(memory), slack_(slack) {}

  /// Frees memory behind the work of the stream.
  CUresult add(const Driver& driver, CUstream stream, CUdeviceptr address,
               const Quota::Charge& charge);
  bool any() const;
  /// Frees what streams have come to. Returns whether more is pending.
  bool settle();
  /// Frees what streams have come to, and nothing more until goOn().
  void pause();
  void goOn();
  /// The context has ended, with its memory and its streams.
  void contextEnded(const void* context);

 private:
  struct Pending {
    MovableMemory::Parted memory = 0;
    const void* owner = nullptr;
    const void* stream = nullptr;  ///< context of the stream
    std::atomic<bool> reached{false};
    /// The charge is recorded under the address of this object, because the memory's address may be
    /// used again.
    std::uint64_t key() const { return reinterpret_cast<std::uint64_t>(this); }
  };

  Quota& quota_;
  MovableMemory& memory_;
  SlackAccount& slack_;
  bool settleNow();

  std::mutex settling_;
  bool paused_ = false;  ///< under settling_
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Pending>> list_;
};

}  // namespace worker
