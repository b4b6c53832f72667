// Host functions of the program that a stream has reached: they run in the client, and the stream goes on when they have returned.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

#include "wire/callback.h"

namespace worker {

class Session;

/// One use of a host function; deletes itself when it has run.
struct PendingCallback {
  Session& session;
  wire::Callback callback;
};

class Callbacks {
 public:
  /// On a thread of the driver: has the client run it and waits until it has.
  void run(Session& session, wire::Callback callback);
  /// The client has run it.
  void done(std::uint64_t id);

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::set<std::uint64_t> running_;
  std::uint64_t last_ = 0;
};

}  // namespace worker
