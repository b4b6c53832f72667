// How a session with a share of GPU time keeps to it while there is no arbiter: a token bucket,
// which time fills and the session's own windows empty. Pure logic; time is an argument.
#pragma once

#include <cstdint>

#include "native/arbiter/mailbox.h"

namespace worker {

class SelfLimit {
 public:
  struct State {
    std::uint32_t share;   ///< parts of a million of the time; above 0
    arbiter::Grant grant;  ///< that holds
    bool waiting;          ///< work waits at the gate
    bool running;          ///< work that was let in may not have ended
  };

  /// Which grant holds from now on: `window` or `closed`. Nanoseconds.
  arbiter::Grant decide(const State& state, std::uint64_t now);
  /// How long nothing changes after decide(), if nothing else happens.
  std::uint64_t rest() const { return rest_; }

 private:
  /// Nanoseconds of the GPU's time that may be used; below 0 after work that took longer than its
  /// window.
  std::int64_t tokens_ = 0;
  std::uint64_t settled_ = 0;  ///< 0: never
  std::uint64_t rest_ = 0;
};

}  // namespace worker
