// The threads that read the client's frames, for the end of the session.
#pragma once

#include <atomic>
#include <list>
#include <mutex>

#include "wire/channel.h"

namespace worker {

/// Thread-safe.
class Readers {
 public:
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

   private:
    friend Readers;
    Readers& readers_;
    wire::WorkerChannel* channel_;
    std::atomic<bool> answers_{false};
  };

  /// The client is gone. Waits until the threads have executed the frames in their rings, but not
  /// for calls whose reply is no longer awaited, and for half a second at most.
  void drain();

 private:
  bool areDrained();

  std::mutex mutex_;
  std::list<Reader*> all_;
};

}  // namespace worker
