// Text for the program. The driver writes device printf and assertions to this process's stdout and
// stderr; the client writes them to the program's. Also sentences about errors, for CUDA_LOG_FILE.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "native/worker/session/connection.h"

namespace worker {

/// Takes the C library's stdout and stderr. The worker's own log goes to file descriptor 2 directly
/// (log.h).
class Output {
 public:
  /// From now on text written to stdout and stderr is queued for send(). Call it before the driver
  /// is loaded, which may read the two variables only once.
  void capture();

  /// Sets the eventfd that is written when text is queued.
  void setWake(int wake) { wake_ = wake; }

  /// Sends queued text to the client, in order. Cheap if the queue is empty.
  void send(Connection& connection);

  /// Bytes sent, or being sent.
  std::uint64_t position() const { return position_.load(std::memory_order_acquire); }

  /// Queues a sentence for the program's CUDA_LOG_FILE; it arrives before the reply of the call
  /// that it is about. Any thread. Never waits: drops the sentence if the queue is full.
  void log(std::string_view sentence);

  /// Called by the captured streams. Blocks while the queue is full, like a write to a full pipe.
  void append(int stream, std::string_view text);

 private:
  struct Piece {
    int stream;
    std::string text;
  };
  void put(int stream, std::string_view text);  ///< with mutex_ held

  static constexpr std::size_t kMostWaiting = std::size_t{8} << 20, kMostOfSentence = 4096;

  std::mutex mutex_;      ///< guards what waits
  std::mutex sendMutex_;  ///< one sender at a time, so that pieces stay in order
  std::condition_variable room_;
  std::vector<Piece> pieces_;
  std::size_t waiting_ = 0;  ///< bytes
  std::atomic<bool> pending_{false};
  std::atomic<std::uint64_t> position_{0};
  std::atomic<int> wake_{-1};
};

}  // namespace worker
