// The memory of a channel's replies, registered with the driver: the GPU writes small copies to the
// host there itself, and the driver returns before. Otherwise it copies them from its own memory to
// the reply: 4 KiB take 2 us longer (H200, driver 580).
#pragma once

#include <memory>

#include "driver.h"
#include "native/worker/session/registration.h"
#include "wire/channel.h"

namespace worker {

/// Belongs to one thread of the worker.
class RegisteredReply {
 public:
  /// A registration takes 0.2 ms, as long as it saves in 100 copies or 500 waits (H200, driver
  /// 580).
  static constexpr unsigned kUsesBefore = 64;

  RegisteredReply(const Driver& driver, std::unique_ptr<wire::WorkerChannel>& channel)
      : registration_(driver), channel_(channel) {}
  /// If the driver does not unregister the memory, the channel stays mapped: the GPU may still
  /// write it.
  ~RegisteredReply();
  RegisteredReply(const RegisteredReply&) = delete;
  RegisteredReply& operator=(const RegisteredReply&) = delete;

  /// Call before each use. Returns whether the memory is registered, for all contexts. It becomes
  /// so before the first copy that `waits` for other work, because the driver itself would wait for
  /// it in the thread's turn, and otherwise after some uses. `contextsEnded`: registration.h.
  bool prepare(unsigned contextsEnded, bool waits);

 private:
  Registration registration_;
  std::unique_ptr<wire::WorkerChannel>& channel_;
  unsigned uses_ = 0;  ///< while it is not registered
};

}  // namespace worker
