// Which streams of the session capture. The driver decides what a capture holds; this list says
// whether one is under way, so that calls outside of captures ask the driver nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda_abi.h"
#include "driver.h"

namespace worker {

/// Thread-safe.
class Captures {
 public:
  explicit Captures(const Driver& driver) : driver_(driver) {}

  /// A capture, by the stream in which it began. A per-thread stream is another stream in each
  /// thread and context: `owner` is its thread, and null for all other streams.
  struct Capture {
    CUstream stream;
    const void* owner;
    CUcontext context;
    std::uint64_t graph;  ///< handle
    bool made;            ///< by the capture, which destroys the graph unless it succeeds
    bool operator==(const Capture& other) const {
      return stream == other.stream && owner == other.owner &&
             (owner == nullptr || context == other.context);
    }
  };

  bool any() const { return (state_.load(std::memory_order_relaxed) & kCount) != 0; }
  /// The same, or the session is traced: one question for what is rare.
  bool anyOrTraced() const {
    return (state_.load(std::memory_order_relaxed) & (kCount | kTraced)) != 0;
  }
  bool isTraced() const { return (state_.load(std::memory_order_relaxed) & kTraced) != 0; }
  void trace() { state_.fetch_or(kTraced); }
  /// The number of captures in the lower half, the number of their changes in the upper one.
  std::uint64_t state() const { return state_.load() & ~(kTraced | kAbandoned); }
  /// Whether the driver captures work for the stream, or refuses it because of a capture.
  bool includes(CUstream stream) const;
  /// The same, without a question to the driver while no stream may capture. One may also after the
  /// end of a stream or context that captured: other streams may have joined, and go on.
  bool isCaptured(CUstream stream) const {
    return (state_.load(std::memory_order_relaxed) & (kCount | kAbandoned)) != 0 &&
           includes(stream);
  }
  /// The handles of the graphs into which streams capture.
  std::vector<std::uint64_t> graphs() const;

  void began(const Capture& capture);
  /// The latest capture of the stream has ended. Returns the handle of a graph that has ended with
  /// it unless `succeeded`, or 0. `context`: of a per-thread stream.
  std::uint64_t ended(CUstream stream, const void* owner, bool succeeded,
                      CUcontext context = nullptr);
  /// The stream has been destroyed. Returns the handle of the graph of its capture, or 0.
  std::uint64_t destroyed(CUstream stream);
  /// The captures of a context have ended with it. Returns the handles of their graphs.
  std::vector<std::uint64_t> ended(CUcontext context);

 private:
  static constexpr std::uint64_t kTraced = 0x8000'0000, kAbandoned = kTraced / 2,
                                 kCount = kAbandoned - 1;

  /// Removes the latest capture that is equal. Requires the mutex.
  std::optional<Capture> take(const Capture& equal);
  void changed();

  const Driver& driver_;
  std::atomic<std::uint64_t> state_{0};
  mutable std::mutex mutex_;
  std::vector<Capture> list_;
};

/// While it lives, calls of this thread that a capture would forbid do not invalidate it: for the
/// worker's own calls.
class RelaxedCapture {
 public:
  /// In the thread's turn, when no capture can begin.
  RelaxedCapture(const Driver& driver, const Captures& captures);
  /// Beside other threads, which may begin a capture at any time.
  explicit RelaxedCapture(const Driver& driver);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  RelaxedCapture(const Driver& driver, bool wanted);

  const Driver& driver_;
  const bool wanted_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace worker
