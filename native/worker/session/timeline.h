// The times of the session's work on the GPU, for a client that traces: an event before and one
// after each piece of work. Graphs are one piece; work that a capture takes does not run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "cuda_abi.h"
#include "driver.h"
#include "native/worker/accounts/stream_account.h"
#include "wire/timeline.h"

namespace worker {

/// Thread-safe. Times are nanoseconds of CLOCK_MONOTONIC. Its events are the worker's own: the
/// client has no handles of them.
class Timeline {
 public:
  /// `streams`: charges the stream that it makes in each context.
  Timeline(const Driver& driver, StreamAccount& streams) : driver_(driver), streams_(streams) {}

  /// A piece of work that is about to be submitted, or has been.
  struct Work {
    wire::TimelineItem item{};
    CUcontext context = nullptr;  ///< null: it is not measured
    CUevent begin = nullptr;
    CUevent end = nullptr;
  };

  /// Call right before the work is submitted to the stream of the current context.
  Work begin(CUstream stream, const wire::TimelineItem& item);
  /// Call right after. `submitted`: the driver did not refuse it.
  void end(CUstream stream, const Work& work, bool submitted);

  /// Call before the context is destroyed, and its events with it.
  void forget(CUcontext context);

  /// Takes up to `most` pieces of work that have ended. `wait`: waits for those that have not, some
  /// seconds at most.
  wire::Timeline take(bool wait, std::size_t most, std::vector<wire::TimelineItem>& items);

 private:
  /// A context's clock: an event, and when it was recorded.
  struct Lane {
    CUdevice device = 0;
    CUstream stream = nullptr;  ///< for the anchor
    CUevent anchor = nullptr;
    std::uint64_t anchoredAt = 0;
    std::vector<CUevent> free;
    std::deque<Work> pending;
    std::size_t inside = 0;  ///< pieces of work between begin() and end()
  };

  Lane* open(CUcontext context);
  bool anchor(Lane& lane) const;
  bool takeEvent(Lane& lane, CUevent& event) const;
  void collect(Lane& lane);
  bool measure(Lane& lane, Work& work) const;
  void moveAnchor(Lane& lane, Work& work) const;
  void awaitAll(std::unique_lock<std::mutex>& lock, const CUcontext* only);
  bool hasPending(const CUcontext* only) const;
  void collectAll(const CUcontext* only);

  const Driver& driver_;
  StreamAccount& streams_;
  std::mutex mutex_;
  std::map<CUcontext, Lane> lanes_;
  std::deque<wire::TimelineItem> ready_;
  std::uint64_t lost_ = 0;
};

}  // namespace worker
