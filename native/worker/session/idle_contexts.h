// Waits until the contexts of a session have no unfinished work, up to a deadline. The driver's own
// wait has none, so another thread waits in the driver.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda_abi.h"

namespace worker {

class Session;

/// For one thread at a time. During await(), no call of the client may begin but those that bring
/// managed memory back, and no stream capture may be under way.
class IdleContexts {
 public:
  explicit IdleContexts(Session& session) : session_(session) {}
  ~IdleContexts();
  IdleContexts(const IdleContexts&) = delete;
  IdleContexts& operator=(const IdleContexts&) = delete;

  /// False after the deadline (CLOCK_MONOTONIC, nanoseconds), if the last await() still waits in
  /// the driver, or if the driver refuses to wait because of a capture.
  bool await(std::uint64_t deadline);

 private:
  void run(const std::vector<void*>& contexts);

  Session& session_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool running_ = false;
  bool wanted_ = false;   ///< false: the caller has given up, so the client's calls go on
  bool refused_ = false;  ///< the driver waited for no work, because of a capture
  std::thread thread_;
};

}  // namespace worker
