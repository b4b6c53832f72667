// Counters and gauges of a session, in a file that the proxy creates and reads
// (gpu-proxy/src/sessions/figures.ts).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace worker {

/// The file's content. Every word is a counter over all threads of the session, or a gauge.
struct Figures {
  static constexpr std::uint32_t kMagic = 0x4e564631;  // "NVF1"
  static constexpr std::uint32_t kVersion = 1;
  static constexpr std::size_t kBytes = 4096;
  using Word = std::atomic<std::uint64_t>;

  std::uint32_t magic;
  std::uint32_t version;
  Word launches;
  Word bytesHostToDevice;
  Word bytesDeviceToHost;
  Word bytesDeviceToDevice;
  Word memsets;
  Word faults;
  Word contexts;  ///< now
  Word threads;   ///< of the program, that use CUDA now
  Word waiting;   ///< threads whose next call waits because the session is suspended, now
  Word pinned;    ///< bytes, now
  Word gateNanoseconds;
  std::byte reserved[128 - 96];
  Word roundTrips[32];  ///< [i]: those that took the worker 2^i to 2^(i+1) ns

  /// One of so many round trips of a thread is timed, as a sample.
  static constexpr unsigned kRoundTripsPerSample = 64;
  void sampleRoundTrip(std::uint64_t nanoseconds);
};

/// The figures of this process: the file's once it is open, else its own.
class FiguresFile {
 public:
  FiguresFile() = default;
  ~FiguresFile();
  FiguresFile(const FiguresFile&) = delete;
  FiguresFile& operator=(const FiguresFile&) = delete;

  /// Maps the file; a sentence when it is not a figures file.
  std::string open(const std::string& path);

  Figures& figures() { return file_ != nullptr ? *file_ : own_; }

 private:
  Figures own_{};
  Figures* file_ = nullptr;
};

/// Relaxed: a count orders nothing.
inline void count(Figures::Word& word, std::uint64_t more = 1) {
  word.fetch_add(more, std::memory_order_relaxed);
}
inline void discount(Figures::Word& word, std::uint64_t less = 1) {
  word.fetch_sub(less, std::memory_order_relaxed);
}

}  // namespace worker
