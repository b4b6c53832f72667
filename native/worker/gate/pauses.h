// Whether a tenant's work pauses in its windows, which tells the arbiter how long windows should
// be. Pure logic; time is an argument.
#pragma once

#include <cstdint>

#include "native/arbiter/mailbox.h"

namespace worker {

/// Nanoseconds.
class Pauses {
 public:
  /// When the work ended; 0: work runs.
  std::uint64_t idleSince() const { return idleSince_; }
  void workEnded(std::uint64_t now) { idleSince_ = now; }
  /// The next work came at `then`.
  void workCame(std::uint64_t then) {
    pace_ = pace_ == arbiter::Pace::unknown ? arbiter::Pace::steady : paceUntil(then);
    idleSince_ = 0;
  }
  /// The gate was open: nobody looked for pauses.
  void gateOpened() { idleSince_ = 0; }
  void forgetPace() { pace_ = arbiter::Pace::unknown; }

  /// Of this window, if the next work comes at `then`, or no more work comes.
  arbiter::Pace paceUntil(std::uint64_t then) const {
    const bool paused = idleSince_ != 0 && then >= idleSince_ + arbiter::kPauseNanoseconds;
    return paused && pace_ == arbiter::Pace::steady ? arbiter::Pace::pausing : pace_;
  }

 private:
  std::uint64_t idleSince_ = 0;
  arbiter::Pace pace_ = arbiter::Pace::unknown;
};

}  // namespace worker
