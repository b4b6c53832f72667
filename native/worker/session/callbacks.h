// Host functions of the program, in stream order: the client runs them, and the stream continues
// when they have returned.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

#include "native/worker/session/connection.h"
#include "native/worker/session/output.h"
#include "wire/callback.h"

namespace worker {

class Callbacks {
 public:
  /// Called on a thread of the driver. Sends the callback to the client and waits until it has run.
  void run(Connection& connection, Output& output, wire::Callback callback);
  /// The same, without waiting. Any thread.
  void post(Connection& connection, const wire::Callback& callback);
  /// The client reports that it has run.
  void done(std::uint64_t id);

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::set<std::uint64_t> running_;
  std::uint64_t last_ = 0;
};

}  // namespace worker
