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

  /// One thread, while it may have frames to read.
  class Reader {
   public:
    Reader(Readers& readers, wire::WorkerChannel* channel);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// Whether the thread is at a call that has an answer. An honest client sends no frame behind
    /// it before it has the answer.
    void answers(bool now) { answers_.store(now, std::memory_order_relaxed); }

    /// Called when the thread has a frame and its turn, before it executes the frame. Waits while
    /// the threads are stopped. Costs a store and a load.
    void enter() {
      executes_.store(true, std::memory_order_relaxed);
      readers_.barrier_.frequent();
      if (readers_.stopped_.load(std::memory_order_acquire)) [[unlikely]]
        awaitContinuation();
    }
    /// The frame was executed. The thread gives up its turn before, and answers after: a client
    /// that reads nothing does not delay stop().
    void leave() { executes_.store(false, std::memory_order_release); }

   private:
    friend Readers;
    void awaitContinuation();

    Readers& readers_;
    wire::WorkerChannel* channel_;
    std::atomic<bool> answers_{false};
    alignas(64) std::atomic<bool> executes_{false};
  };

  /// Stops the threads before their next frame, and waits until none executes one. False after the
  /// deadline (CLOCK_MONOTONIC, nanoseconds): then all go on. For one thread at a time.
  bool stop(std::uint64_t deadline);
  /// Lets the threads go on.
  void proceed();

  /// The client is gone. Waits until the threads have executed the frames in their rings, but not
  /// for calls whose reply is no longer awaited, and for half a second at most. Stopped threads
  /// execute nothing more.
  void drain();

 private:
  bool areDrained();
  bool executeNothing();

  Figures::Word& waiting_;
  const wire::ThreadBarrier barrier_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::list<Reader*> all_;
};

}  // namespace worker
