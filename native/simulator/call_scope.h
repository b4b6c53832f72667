// Calls of the driver that run, and how all of them are held back while the process is locked.
#pragma once

namespace simulator {

/// A call of the driver. It waits while calls are held back. A call within a call is part of it.
class CallScope {
 public:
  CallScope();
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
};

/// Lets no further call begin. Those that run go on.
void holdCalls();
void releaseCalls();
/// Whether a call runs.
bool callsRun();

}  // namespace simulator
