// The backlogs of all contexts of a session.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "cuda_abi.h"
#include "driver.h"
#include "native/worker/gate/backlog.h"
#include "native/worker/gate/durations.h"

namespace worker {

/// Not thread-safe, except for gpus(). Times are nanoseconds of CLOCK_MONOTONIC.
class Backlogs {
 public:
  explicit Backlogs(const Driver& driver) : driver_(driver) {}

  /// Of the context, which must be the current one.
  Backlog& of(CUcontext context);
  /// The stream is about to end. False if the driver refuses a marker behind its work, which goes
  /// on: then it must not end yet. `capturing`: a stream of the program may capture.
  bool retire(CUstream stream, bool capturing);
  /// As Backlog::aboutToCapture(), in all contexts.
  CUresult aboutToCapture(CUstream stream);
  void forget(CUstream stream);
  void forget(CUcontext context);
  /// Whether streams of the context have work, also work that was submitted while another context
  /// was current.
  bool isBusy(CUcontext context, bool capturing);

  auto begin() { return byContext_.begin(); }
  auto end() { return byContext_.end(); }
  bool hasContexts() const { return !byContext_.empty(); }
  /// How many GPUs have a context. Any thread.
  std::size_t gpus() const { return gpus_; }
  std::uint64_t durationOf(std::uint64_t shape) { return durations_.at(durations_.find(shape)); }

  /// No context has work left.
  bool empty() const;
  bool isBusy(CUdevice gpu) const;
  /// One GPU has work and another has none.
  bool isPartlyIdle() const;
  /// Contexts with work on the GPU that has most of them: the hardware gives each a turn.
  std::uint32_t busyContexts() const;
  /// Estimated duration of the remaining work of the context that has most.
  std::uint64_t longest(std::uint64_t now) const;
  /// No context has more than `remaining` left, by a reliable estimate, or a piece of work on the
  /// GPU that is longer than `piece`.
  bool nearlyEmpty(std::uint64_t now, std::uint64_t remaining, std::uint64_t piece) const;

  /// A program with several GPUs may have given one of them a kernel that waits for what it is
  /// about to give another. So the GPU that was given less catches up, with a few pieces of work or
  /// as much as takes `limit`; else a window would end between the two, and the first would go on
  /// until the next one.
  bool catchesUp(const Backlog& backlog, std::uint64_t shape, std::uint64_t limit,
                 std::uint64_t now);
  /// The counts are wrong if the gate closed between two launches that belong together, because an
  /// open gate does not count. What remains then is one GPU with nothing to do, and another that
  /// gets nothing done since the gate closed. The launch that it waits for may stand behind others.
  bool isAwaited(const Backlog& backlog, std::uint64_t closedSince, std::uint64_t now) const;
  /// Resets the counts that catchesUp() compares.
  void levelAll();
  /// The same; if the backlog's GPU is idle, it may catch up with the others.
  void levelFor(const Backlog& backlog);

  /// So many pieces of work a GPU may have when it catches up with another, however long they are
  /// (those that wait for each other seem long).
  static constexpr std::size_t kFew = 4;
  /// When nothing got done for so long, work may be waiting for work that is not let in.
  static constexpr std::uint64_t kStuck = 10'000'000;

 private:
  void countGpus();
  Backlog* ownerOf(CUstream stream);

  const Driver& driver_;
  Durations durations_;
  std::map<CUcontext, std::unique_ptr<Backlog>> byContext_;
  std::atomic<std::size_t> gpus_{0};
};

}  // namespace worker
