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
struct GreenContext;
struct StreamCapture;

struct Operation {
  std::function<void()> run;  ///< may be empty: the operation is then only a position in the order
  /// operations of other streams that it follows
  std::vector<std::shared_ptr<const Completion>> after;
  bool always = false;  ///< runs even after a fault of the process
  std::shared_ptr<Completion> completion;
};

/// State shared by a stream and its thread. The thread ends when the queue is closed and empty.
struct Queue {
  /// Maximum queued operations. Further submissions wait, as with a GPU, so a program cannot
  /// exhaust memory with launches.
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
  std::shared_ptr<const GreenContext> green;  ///< null for an ordinary stream
  std::mutex attributesMutex;
  std::map<int, CUstreamAttrValue> attributes;  ///< set by cuStreamSetAttribute
  std::shared_ptr<StreamCapture> capture;  ///< null: it does not capture; guarded by graphMutex()

  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
  /// Appends an operation. It follows all operations that the rules of the legacy default stream
  /// order before it.
  std::shared_ptr<Completion> submit(Operation operation);
  std::shared_ptr<Completion> submit(std::function<void()> run);
  /// Executes `work` in stream order and returns when it has ended. Runs on the caller's thread if
  /// nothing precedes it.
  void perform(std::function<void()> work);
  /// Executes short `work` on the caller's thread if nothing precedes it; else returns false, and
  /// the work must be submitted. Waking the stream's thread would take longer than the work.
  bool performNow(const std::function<void()>& work);
  /// Whether all submitted operations have ended; for the legacy stream, also those of the streams
  /// that it waits for.
  bool idle();
  /// Waits for all operations submitted so far.
  void synchronize();
  /// The end of the work submitted so far; null if nothing was.
  std::shared_ptr<const Completion> last();
  /// Called when the handle is destroyed. The object stays until its work has ended, so that the
  /// legacy stream and cuCtxSynchronize still wait for it.
  void retire();

 private:
  void awaitRoom();
  // With context.submission held:
  std::vector<std::shared_ptr<const Completion>> predecessors();
  bool nothingPending() const { return last_ == nullptr || last_->done(); }
  void enqueue(Operation operation);
  void startThread();

  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::shared_ptr<Completion> last_;  ///< guarded by context.submission
  /// the last operation executed on a caller's thread; guarded by context.submission
  std::shared_ptr<Completion> performed_;
  bool started_ = false;  ///< guarded by context.submission
};

/// The end of all work that was submitted to the context so far.
std::shared_ptr<const Completion> workOf(Context& context);
/// All work that is submitted to the context from now on follows the operation.
void awaitInAll(Context& context, const std::shared_ptr<const Completion>& operation);

/// Whether a handle names a default stream of the current context.
inline bool isDefault(CUstream handle) { return handle <= CU_STREAM_PER_THREAD; }
/// Finds the stream of a handle: a default stream of `current`, or that of cuStreamCreate, which
/// does not depend on `current`.
CUresult findStream(Context* current, CUstream handle, std::shared_ptr<Stream>& stream);

/// Runs the body of a call on a stream: body(Context&, Stream&), with the stream's context. Only a
/// default stream needs a current context.
template <class Body>
CUresult onStream(CUstream handle, Body&& body) noexcept {
  const auto run = [&](Context* current) -> CUresult {
    std::shared_ptr<Stream> stream;
    const CUresult status = findStream(current, handle, stream);
    return status == CUDA_SUCCESS ? body(stream->context, *stream) : status;
  };
  if (isDefault(handle)) return inContext([&](Context& current) { return run(&current); });
  return withoutContext([&] { return run(nullptr); });
}

}  // namespace simulator
