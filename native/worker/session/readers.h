// The threads that read the client's frames: how they are stopped between two frames, and what
// happens to the rest of the frames at the end of the session.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>

#include "native/worker/reports/figures.h"
#include "wire/channel.h"
#include "wire/process_barrier.h"

namespace worker {

/// Thread-safe.
class Readers {
 public:
  explicit Readers(Figures::Word& waiting) : waiting_(waiting) {}

  /// Which frames are stopped. Frames that bring managed memory back to the program are not among
  /// `calls`: work on the GPU may wait for a host function that accesses that memory.
  enum class Stop : int { none, calls, all };

  /// One thread, while it may have frames to read.
  class Reader {
   public:
    Reader(Readers& readers, wire::WorkerChannel* channel);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// Whether the thread is at a call that has an answer. An honest client sends no frame behind
    /// it before it has the answer, or the GPU has ended its wait (WorkerChannel::endOfWait()).
    void answers(bool now) { answers_.store(now, std::memory_order_relaxed); }

    /// Called when the thread has a frame and its turn, before it executes the frame. Waits while
    /// such frames are stopped: at `least`, or more. Costs a store and a load.
    void enter(Stop least) {
      executes_.store(least, std::memory_order_relaxed);
      readers_.barrier_.frequent();
      if (readers_.stopped_.load(std::memory_order_acquire) >= least) [[unlikely]]
        awaitContinuation(least);
    }
    /// The frame was executed. The thread gives up its turn before, and answers after: a client
    /// that reads nothing does not delay stop().
    void leave() { executes_.store(Stop::none, std::memory_order_release); }

   private:
    friend Readers;
    void awaitContinuation(Stop least);

    Readers& readers_;
    wire::WorkerChannel* channel_;
    std::atomic<bool> answers_{false};
    alignas(64) std::atomic<Stop> executes_{Stop::none};  ///< the least stop of its frame
  };

  /// Stops the threads before their next such frame, and waits until none executes one. False after
  /// the deadline (CLOCK_MONOTONIC, nanoseconds): then all go on. For one thread at a time.
  bool stop(Stop frames, std::uint64_t deadline);
  /// Lets the threads go on.
  void proceed();

  /// The client is gone. Waits until the threads have executed the frames in their rings, but not
  /// for calls whose reply is no longer awaited, and for half a second at most. Stopped threads
  /// execute nothing more.
  void drain();

 private:
  bool areDrained();
  bool executeNone(Stop frames);

  Figures::Word& waiting_;
  const wire::ThreadBarrier barrier_;
  std::atomic<Stop> stopped_{Stop::none};
  std::mutex mutex_;
  std::list<Reader*> all_;
};

}  // namespace worker
