// Work that a kernel gives to streams of the device runtime: grids that it launches, copies, fills,
// events. A grid is complete when all of these are.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "native/simulator/ptx/runtime/family.h"

namespace simulator::ptx {

/// State of an event: whether the work before its record has ended.
using Mark = std::shared_ptr<std::atomic<bool>>;

struct Work {
  std::function<void()> run;  ///< empty: only waits or marks
  Mark after;                 ///< set before the work may begin; null: nothing to wait for
  Mark done;                  ///< set when it has ended; null: nobody asks
};

/// A stream of a grid: its kind, and what tells it from others of that kind.
using StreamKey = std::array<std::uint64_t, 3>;

/// Thread-safe. Streams are independent of each other. Each executes its work in order.
class Children {
 public:
  explicit Children(Family& family) : family_(family) {}

  void add(const StreamKey& stream, Work work);
  /// Executed one after the other when everything else has ended.
  void addTail(Work work);
  /// Executes one piece of work that may begin, on this thread. False when there is none.
  bool runOne();
  /// Executes all work, and returns when it has ended.
  void finish();

  std::uint64_t newStream();
  bool hasStream(std::uint64_t handle) const;
  bool removeStream(std::uint64_t handle);
  std::uint64_t newEvent();
  /// The event's last record, null if there is none yet; empty if there is no such event.
  std::optional<Mark> event(std::uint64_t handle) const;
  bool record(std::uint64_t handle, Mark mark);
  bool removeEvent(std::uint64_t handle);

 private:
  struct Stream {
    std::deque<Work> queue;
    bool scheduled = false;  ///< in ready_ or waiting_, or its first piece of work is executing
  };
  using Streams = std::map<StreamKey, Stream>;

  bool take(Streams::iterator& stream);
  void execute(Streams::iterator stream, std::unique_lock<std::mutex>& lock);
  void drain();

  Family& family_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Streams streams_;
  std::deque<Streams::iterator> ready_;  ///< streams whose first piece of work may be able to begin
  std::deque<Streams::iterator> waiting_;  ///< streams that wait for an event
  std::size_t running_ = 0;
  std::deque<Work> tails_;
  std::set<std::uint64_t> handles_;
  std::map<std::uint64_t, Mark> events_;
};

}  // namespace simulator::ptx
