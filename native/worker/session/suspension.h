// Takes the GPU from a session and gives it back. Between suspend() and resume(), the session's
// calls wait at a call boundary, and none of its work runs.
#pragma once

#include <cstdint>
#include <string>

#include "native/worker/session/idle_contexts.h"

namespace worker {

/// For one thread at a time.
class Suspension {
 public:
  explicit Suspension(Session& session) : session_(session), contexts_(session) {}

  /// Returns an empty string once the session is suspended, also if it was. After the timeout, the
  /// session goes on unchanged, and the sentence says what of it still runs.
  std::string suspend(std::uint64_t timeoutNanoseconds);
  /// Lets the session go on. Does nothing if it is not suspended.
  void resume();

 private:
  std::string stopCalls(std::uint64_t deadline);

  Session& session_;
  IdleContexts contexts_;
  bool suspended_ = false;
};

}  // namespace worker
