// A stream: a queue of operations that a thread of its own executes in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/completion.h"
#include "native/simulator/driver_call.h"

namespace simulator {

struct Context;

struct Operation {
  std::function<void()> run;                             ///< may be empty: the operation is then only a place in the order
  std::vector<std::shared_ptr<const Completion>> after;  ///< of other streams
  bool always = false;                                   ///< runs even when the process has a fault
  std::shared_ptr<Completion> completion;
};

/// What the stream and its thread share; the thread ends when the queue is closed and empty.
struct Queue {
  /// Whoever submits more waits for one to begin, as with a GPU: a program cannot fill the memory with launches.
  static constexpr std::size_t kMost = 1024;

  std::mutex mutex;
  std::condition_variable changed, room;
  std::deque<Operation> operations;
  bool closed = false;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Context& context, unsigned flags, int priority);
  ~Stream();  ///< lets queued operations finish
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Context& context;
  const unsigned flags;
  const int priority;
  const std::uint64_t id;
  std::mutex attributesMutex;
  std::map<int, CUstreamAttrValue> attributes;  ///< set by cuStreamSetAttribute

  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
  /// Appends an operation. It comes after everything that the rules of the legacy default stream put before it.
  std::shared_ptr<Completion> submit(Operation operation);
  std::shared_ptr<Completion> submit(std::function<void()> run);
  /// Does `work` at its place in the order and returns when it has ended: on the caller's thread when nothing is before it.
  void perform(std::function<void()> work);
  /// True when all that was submitted has ended (for the legacy stream: also what it would wait for).
  bool idle();
  /// Waits for all that was submitted until now.
  void synchronize();
  /// The handle is gone: the object stays until its work has ended, so that the legacy stream and cuCtxSynchronize still wait for it.
  void retire();

 private:
  void awaitRoom();
  // With context.submission held:
  std::vector<std::shared_ptr<const Completion>> predecessors();
  bool nothingPending() const { return last_ == nullptr || last_->done(); }
  void enqueue(Operation operation);
  void startThread();

  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::shared_ptr<Completion> last_;       ///< guarded by context.submission
  std::shared_ptr<Completion> performed_;  ///< the last operation that a caller's thread did; the same guard
  bool started_ = false;                   ///< guarded by context.submission
};

/// Resolves a handle: null and CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, or one that cuStreamCreate made.
CUresult findStream(Context& current, CUstream handle, std::shared_ptr<Stream>& stream);

/// A call on a stream: body(Context&, Stream&), where Context is the caller's current one.
template <class Body>
CUresult onStream(CUstream handle, Body&& body) noexcept {
  return inContext([&](Context& context) -> CUresult {
    std::shared_ptr<Stream> stream;
    const CUresult status = findStream(context, handle, stream);
    return status == CUDA_SUCCESS ? body(context, *stream) : status;
  });
}

}  // namespace simulator
