// Takes the GPU from a session and gives it back. Between suspend() and resume(), the session's
// calls wait at a call boundary, and none of its work runs. Meanwhile its memory may leave.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "native/worker/session/idle_contexts.h"
#include "native/worker/session/owned_file.h"
#include "native/worker/session/parking.h"
#include "native/worker/session/relocation.h"

namespace worker {

/// For one thread at a time. A sentence is empty if all is done.
class Suspension {
 public:
  explicit Suspension(Session& session);

  /// Returns once the session is suspended, also if it was. If it cannot be within the timeout, it
  /// goes on unchanged, and the sentence says why.
  std::string suspend(std::uint64_t timeoutNanoseconds);
  /// Why the suspended session has memory that cannot leave. Empty if all of it can, or has left.
  std::string whyStays();
  /// Moves memory of the suspended session to the arena (Swap::moveOut).
  std::string leave(std::uint64_t bytes, OwnedFile file);
  /// Brings memory back to the suspended session (Swap::moveIn), which stays suspended.
  std::string enter(std::uint64_t bytes);
  /// Moves the suspended session, whose memory has left, to another GPU. Done at once if it is
  /// there. If the driver loses the session, it ends.
  std::string move(std::string_view gpu);
  /// Takes the suspended session, whose memory has left, from its GPU, and parks the process
  /// (parking.h): other programs may write it to a file then. Returns at once if that is refused.
  /// Otherwise it answers, executes what comes from `commands`, and returns once the session is
  /// back on its GPU. `answer` is then another descriptor. If the driver loses it, it ends.
  std::string park(OwnedFile& answer, int commands);
  /// Brings all of its memory back, and lets the session go on. If there is no room for the memory,
  /// it stays suspended. Does nothing if it is not suspended.
  std::string resume();
  /// Gives up the arena, also of a session that goes on: it is stopped meanwhile.
  std::string drop();

 private:
  std::string whyNotParked();
  std::string stop(std::uint64_t deadline);
  std::string stopCalls(std::uint64_t deadline);

  Session& session_;
  IdleContexts contexts_;
  Relocation relocation_;
  Parking parking_;
  bool suspended_ = false;
};

}  // namespace worker
