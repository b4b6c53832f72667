// What the program is to read. Device printf and assertions: the driver writes them to this process's stdout and stderr, the client to the
// program's. And the sentence behind an error, for its CUDA_LOG_FILE.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace worker {

class Session;

/// Takes the C library's stdout and stderr. The worker's own log goes to file descriptor 2 directly (log.h).
class Output {
 public:
  /// From here on what is written through stdout and stderr waits for send(). Before the driver is loaded: it may look at them only then.
  void capture();

  /// This descriptor, an eventfd, is written to when something waits.
  void setWake(int wake) { wake_ = wake; }

  /// Hands what waits to the client, in order; cheap when there is nothing.
  void send(Session& session);

  /// Bytes sent so far, or about to be.
  std::uint64_t position() const { return position_.load(std::memory_order_acquire); }

  /// A sentence for the program's CUDA_LOG_FILE, from any thread; there before the answer of the call that it is about. Never waits: where
  /// too much waits already, it is left out.
  void log(std::string_view sentence);

  /// Called by the captured streams. Waits while the client does not read, as a program does that writes to a full pipe.
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
