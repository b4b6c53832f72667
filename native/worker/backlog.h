// What a session has given one context's GPU to do and what has not been done yet, as far as it can be told without slowing it down:
// markers (events without timing) are recorded behind some 0.4 ms of work at a time, and asked for now and then.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cuda_abi.h"
#include "driver.h"
#include "native/worker/durations.h"

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

  /// The stream is used; what is on it is not measured.
  void note(CUstream stream);
  /// Work has just been submitted to the stream by this thread, in whose context it is.
  void submitted(CUstream stream, std::uint64_t shape, std::uint64_t now);

  /// Something that the driver can be asked: whether the marker has been passed, or, without one, whether the stream's work has ended.
  struct Question {
    CUstream stream = nullptr;
    CUevent marker = nullptr;
    std::uint64_t last = 0;  ///< when the stream was used last
    bool done = false;
  };

  /// What there is to ask. `all`: also of streams with work that has no marker, however fresh it is.
  std::vector<Question> questions(std::uint64_t now, bool all) const;
  /// The same of every stream that was used, measured or not.
  std::vector<Question> streams() const;
  /// Asks; the context is current. Touches nothing of this object, so that work can be submitted meanwhile. Streams and events must stay.
  void ask(std::vector<Question>& questions) const;
  /// Takes in what was answered.
  void learn(const std::vector<Question>& answers, std::uint64_t now);

  /// Nothing is left to be done.
  bool empty() const;
  /// How long what is left will take, as a guess; what is not measured counts as nothing.
  std::uint64_t remaining(std::uint64_t now) const;
  /// That guess is none to rely on: some of it was submitted while nobody measured, or is new, or takes longer than it should.
  bool isUncertain(std::uint64_t now) const;
  /// A piece of work that takes longer than that is on the device, as a guess.
  bool hasLonger(std::uint64_t nanoseconds) const;
  /// Pieces of work that had not been seen before when they were submitted.
  std::size_t unknown() const { return unknown_; }
  /// Pieces of work that were measured and are not done.
  std::size_t pieces() const;
  /// Pieces of work that were submitted since level(0): since nothing was left to be done anywhere.
  std::size_t submissions() const { return submissions_; }
  void level(std::size_t submissions) { submissions_ = submissions; }
  /// When something was done last.
  std::uint64_t lastDone() const { return lastDone_; }

  /// Nobody measures from now on.
  void stopMeasuring();
  /// All streams that were used may have work that was not measured.
  void startMeasuring();

  /// The stream is about to end: it may not be asked for any more.
  void forget(CUstream stream);
  /// The context is about to end, and its events with it.
  void forgetAll();

 private:
  /// Launches of one stream behind which there is no marker yet.
  struct Lane {
    CUstream stream = nullptr;
    bool unmeasured = false;
    std::uint64_t guess = 0;
    std::vector<Durations::Index> work;
    std::uint64_t first = 0, last = 0;  ///< when the first and the last of them were submitted
  };
  struct Marker {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    std::uint64_t guess = 0;
    std::vector<Durations::Index> work;
    std::uint64_t first = 0;
    std::size_t unknown = 0;
  };

  /// What has been running for longest, and since when.
  struct Head {
    std::uint64_t guess, since;
  };

  Lane* find(CUstream stream);
  Lane& laneOf(CUstream stream);
  Head head(std::uint64_t now) const;
  void mark(Lane& lane, std::size_t unknown);
  void done(std::vector<Durations::Index> work, std::uint64_t first, std::uint64_t now);
  bool take(CUevent& event);
  bool hasEnded(const Question& question) const;

  const Driver& driver_;
  const CUcontext context_;
  const CUdevice gpu_;
  Durations& durations_;
  std::vector<Lane> lanes_;  ///< of every stream that was used and has not ended: work that nobody knows of would run outside of windows
  std::deque<Marker> markers_;
  std::vector<CUevent> free_;
  std::uint64_t lastDone_ = 0;
  std::uint64_t guess_ = 0;  ///< of all markers and lanes
  std::size_t unknown_ = 0;  ///< of all markers
  std::size_t submissions_ = 0;
};

}  // namespace worker
