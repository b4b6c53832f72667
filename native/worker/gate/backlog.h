// Unfinished work of one context, estimated without slowing it down: a marker (an event without
// timing) is recorded behind every 0.4 ms of work, and polled.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cuda_abi.h"
#include "driver.h"
#include "native/worker/gate/durations.h"

namespace worker {

/// Not thread-safe. Times are nanoseconds of CLOCK_MONOTONIC.
class Backlog {
 public:
  Backlog(const Driver& driver, CUcontext context, CUdevice gpu, Durations& durations)
      : driver_(driver), context_(context), gpu_(gpu), durations_(durations) {}
  ~Backlog();
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;

  CUcontext context() const { return context_; }
  CUdevice gpu() const { return gpu_; }

  /// A stream, and the thread whose per-thread default stream it is, if it is one.
  struct Place {
    CUstream stream = nullptr;
    const void* owner = nullptr;
    bool operator==(const Place&) const = default;
  };

  /// The stream is in use; its work is not measured.
  void note(Place place);
  /// Work has just been submitted to the stream by this thread, in whose context it is.
  void submitted(Place place, std::uint64_t shape, std::uint64_t now);
  /// This thread has just submitted work to its per-thread default stream beside a capture. Default
  /// streams cannot be asked then, so an event is recorded behind the work.
  void submittedBesideCapture(Place place);

  /// A query to the driver: whether the marker was passed, or, without a marker, whether the stream
  /// is idle.
  struct Question {
    Place place;
    CUevent marker = nullptr;
    CUevent before = nullptr;  ///< of a stream that cannot be asked: behind its last work
    bool lost = false;         ///< work is behind `before`
    std::uint64_t last = 0;    ///< when the stream was used last
    bool retired = false;      ///< the marker is that of a stream that has ended
    bool done = false;
  };

  /// The queries that are due. `all`: also streams with fresh work that has no marker yet.
  std::vector<Question> questions(std::uint64_t now, bool all) const;
  /// Queries of all streams in use, measured or not.
  std::vector<Question> streams() const;
  /// Queries the driver; the context must be current. Leaves this object alone, so that work can be
  /// submitted meanwhile. Streams and events must not be destroyed. `capturing`: a stream of the
  /// program may capture.
  void ask(std::vector<Question>& questions, bool capturing) const;
  /// Updates the estimate with the answers.
  void learn(const std::vector<Question>& answers, std::uint64_t now);
  /// Forgets the work of ended streams that has ended too.
  void settle(const std::vector<Question>& answers);

  /// No work is left.
  bool empty() const;
  /// Estimated duration of the remaining work; work that is not measured counts as zero.
  std::uint64_t remaining(std::uint64_t now) const;
  /// The estimate is unreliable: some work was not measured, is of an unknown shape, or takes
  /// longer than expected.
  bool isUncertain(std::uint64_t now) const;
  /// The device has a piece of work with a longer estimate than that.
  bool hasLonger(std::uint64_t nanoseconds) const;
  /// Pieces of work of unknown duration.
  std::size_t unknown() const { return unknown_; }
  /// Unfinished pieces of measured work.
  std::size_t pieces() const;
  /// Pieces of work that were submitted since level(0): since nothing was left to be done anywhere.
  std::size_t submissions() const { return submissions_; }
  void level(std::size_t submissions) { submissions_ = submissions; }
  /// When work finished last.
  std::uint64_t lastDone() const { return lastDone_; }

  /// Work is no longer measured. That of streams that have ended is still waited for.
  void stopMeasuring();
  /// Work is measured from now on. Streams in use may have work that was not.
  void startMeasuring();

  /// The stream is about to capture, and cannot be queried then, nor can default streams that wait
  /// for it. The context must be current. An error if the driver refuses a marker behind their
  /// work: then nobody may capture.
  CUresult aboutToCapture(CUstream stream);
  /// Whether the stream was used, and has not ended.
  bool knows(CUstream stream) const;
  /// Its streams, without the default ones.
  std::vector<CUstream> namedStreams() const;
  /// The stream is about to end, and may not be asked for any more. Its work goes on: a marker
  /// behind it is recorded. The context must be current. False if the driver refuses the marker;
  /// then the stream must not end yet. `capturing`: as for ask().
  bool retire(CUstream stream, bool capturing);
  /// Forgets the stream and its work.
  void forget(CUstream stream);
  /// The work of streams that have ended has ended too.
  void forgetRetired();
  /// The context is about to end, and its events with it.
  void forgetAll();

 private:
  /// Launches of one stream behind which there is no marker yet.
  struct Lane {
    Place place;
    bool unmeasured = false;
    std::uint64_t guess = 0;
    std::vector<Durations::Index> work;
    std::uint64_t first = 0, last = 0;  ///< when the first and the last of them were submitted
    CUevent before = nullptr;           ///< behind the work before, or beside, the last capture;
                                        ///< null: there was none
    bool lost = false;                  ///< the driver refused to record `before`
  };
  struct Marker {
    Place place;
    CUevent event = nullptr;
    std::uint64_t guess = 0;
    std::vector<Durations::Index> work;
    std::uint64_t first = 0;
    std::size_t unknown = 0;
  };

  /// The work that has been running for longest, and its start.
  struct Head {
    std::uint64_t guess, since;
  };

  Lane* find(Place place);
  Lane& laneOf(Place place);
  Head head(std::uint64_t now) const;
  Question about(const Lane& lane) const;
  CUresult recordBefore(Lane& lane, CUstream behind);
  void mark(Lane& lane, std::size_t unknown);
  void done(std::vector<Durations::Index> work, std::uint64_t first, std::uint64_t now);
  std::vector<Question> ofRetired() const;
  bool take(CUevent& event);
  bool captures(CUstream stream) const;
  bool hasEnded(const Question& question, bool capturing) const;
  bool isIdle(CUstream stream) const;

  const Driver& driver_;
  const CUcontext context_;
  const CUdevice gpu_;
  Durations& durations_;
  std::vector<Lane> lanes_;  ///< of every used stream that has not ended: unknown work would run
                             ///< outside of windows
  std::deque<Marker> markers_;
  std::vector<CUevent> retired_;  ///< behind all work of streams that have ended
  std::vector<CUevent> free_;
  std::uint64_t lastDone_ = 0;
  std::uint64_t guess_ = 0;  ///< of all markers and lanes
  std::size_t unknown_ = 0;  ///< of all markers
  std::size_t submissions_ = 0;
};

}  // namespace worker
