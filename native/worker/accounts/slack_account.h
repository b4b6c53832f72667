// Charges the slack of pages that small allocations share, beyond what the node bears for each
// session on each GPU.
#pragma once

#include <cstdint>
#include <mutex>

#include "native/worker/accounts/quota.h"
#include "native/worker/memory/movable_memory.h"

namespace worker {

/// Thread-safe.
class SlackAccount {
 public:
  /// Bytes that a session has on each GPU without a charge: a page that is in use, and one that is
  /// coming or going.
  static constexpr std::uint64_t kFree = 2 * FreeRanges::kPage;

  SlackAccount(Quota& quota, const MovableMemory& memory) : quota_(quota), memory_(memory) {}

  /// Small memory was allocated or freed. The charge may exceed the limit by one page; then nothing
  /// else fits.
  void settle() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t due = memory_.slack(kFree);
    if (due > charged_) quota_.chargeBeyond(due - charged_);
    if (due < charged_) quota_.refund(charged_ - due);
    charged_ = due;
  }

 private:
  Quota& quota_;
  const MovableMemory& memory_;
  std::mutex mutex_;
  std::uint64_t charged_ = 0;
};

}  // namespace worker
