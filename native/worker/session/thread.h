// The worker's side of one client thread: receives frames, dispatches them, replies. Generated
// dispatch and hand-written bodies work with it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "cuda_abi.h"
#include "driver.h"
#include "handle_kinds.h"
#include "native/worker/gate/gate.h"
#include "native/worker/session/completion_word.h"
#include "native/worker/session/registered_reply.h"
#include "native/worker/session/session.h"
#include "wire/channel.h"
#include "wire/copy.h"

namespace worker {

/// Which work needs a window of GPU time (`window` in cuda-api/calls/): `always`; `small` copies
/// only, because large ones run beside kernels; `marker`: events.
enum class Window { always, small, marker };

class Thread {
 public:
  Thread(Session& owner, std::unique_ptr<wire::WorkerChannel> channel)
      : session(owner),
        driver(owner.driver),
        completion(owner.driver),
        channel_(std::move(channel)),
        registeredReply_(owner.driver, channel_),
        pass_(owner.gate),
        use_(owner.uses),
        reader_(owner.readers, channel_.get()) {}

  Session& session;
  const Driver& driver;
  CompletionWord completion;

  /// Whether the worker may wait for the completion word. Not if the code may print: only the
  /// driver's waiting calls guarantee that the output has arrived.
  bool mayFollow() const { return !session.codeMayPrint && !session.captures.any(); }
  /// Lets the GPU write the word behind all work of the stream.
  bool follow(CUstream stream) {
    return mayFollow() && completion.follow(stream, session.contexts.endings());
  }
  /// Whether the GPU writes a small copy to the reply itself. `waits`: other work may come first.
  bool writesReply(bool waits) {
    return registeredReply_.prepare(session.contexts.endings(), waits);
  }

  /// Records that the current frame launched a kernel into this stream.
  void noteLaunch(CUstream stream) { launchedInto_ = stream, launchFrame_ = frames_; }
  /// Counts a launch. The figure, which all threads write, has a row of launches at its end.
  void countLaunch() {
    if (row_ == 0)
      count(session.figures.launches);
    else
      ++launches_;
  }
  /// The same for a small copy that the client does not wait for. If it waited right behind the
  /// last one, the word follows at once.
  void noteCopy(CUstream stream);
  /// Lets the GPU write the word if the previous frame gave the stream work; returns whether it
  /// does.
  bool followsWork(CUstream stream);

  /// Dispatches one frame, then charges the memory of code that it loaded.
  CUresult execute(const wire::FrameHeader& header, wire::Decoder& payload, wire::Encoder& reply);

  /// Serves until the client's thread ends or breaks the protocol.
  void serve();

  /// Finds the driver's object of a handle. Streams 0, 1 and 2 and context 0 (none) are not in the
  /// table.
  template <class T>
  CUresult find(std::uint64_t handle, T* object) const;

  /// Creates the handle of a new driver object. It ends with `parent` (a handle, or 0), and with
  /// the current context if it belongs to one.
  template <class T>
  std::uint64_t add(wire::HandleKind kind, T object, std::uint64_t parent = 0) {
    return session.handles.add(kind, (void*)object, parent,
                               endsWithContext(kind, parent) ? ownerHandle() : 0);
  }

  /// The context with which ends what is made now: the current one, or for a green one the primary
  /// context of its device. Null without one.
  CUcontext owner() const;

  /// Whether the limit on handles is reached. Then the body returns CUDA_ERROR_OUT_OF_MEMORY before
  /// it calls the driver.
  bool full() const { return session.handlesUsedUp(); }

  /// Waits until the session may use the GPU. Call it right before work is submitted. `shape`: what
  /// the work's duration depends on.
  void awaitWindow(Window window, CUstream stream, std::uint64_t bytes,
                   std::initializer_list<std::uint64_t> shape) {
    if (session.captures.anyOrTraced()) [[unlikely]]
      return awaitWindowOrCapture(window, stream, bytes, shape);
    passGate(window, stream, bytes, shape);
  }
  /// Whether the driver captures work for the stream instead of running it. Then the call passes
  /// neither the gate nor the accounts.
  bool isCaptured(CUstream stream) const { return session.captures.isCaptured(stream); }
  /// The current context has changed.
  void contextChanged() { pass_.contextChanged(), forgetLaunched(); }
  /// Waits until no other call uses the object, which is about to be destroyed.
  template <class T>
  void ends(T object) {
    session.awaitUnused(use_, (const void*)object);
    if constexpr (std::is_same_v<T, CUcontext>) {
      session.managed.contextEnds(driver, object);
      session.memory.pools().contextEnding(object);
    }
    if constexpr (requires { session.gate.forget(object); }) session.gate.forget(object);
    if constexpr (requires { session.timeline.forget(object); }) {
      if (session.captures.anyOrTraced()) session.timeline.forget(object);
    }
  }

  /// Call before code is loaded into the current context. At codeFits(), or the end of the frame,
  /// the memory that the driver took is charged; if it does not fit, `image` is unloaded.
  void loadsCode() const;
  void codeLoaded(std::uint64_t image) const { image_ = image; }
  /// Charges the code that the frame loaded so far. If it does not fit, unloads it and returns
  /// false.
  bool codeFits();

  /// Whether the quota has room for the local memory of a kernel that is about to be launched.
  /// Quick for one that was launched into the stream before.
  bool localMemoryFits(std::uint64_t handle, CUfunction function, CUstream stream);
  /// The same for a node of a graph that runs in the context; null: in the current one.
  bool localMemoryFits(std::uint64_t handle, CUfunction function, CUcontext context);

  /// Passes the ticket on, so that the session's next call runs: for a body that is about to wait
  /// in the driver. Until the call returns, no call destroys the current context or `used`: the
  /// stream, event or context that it waits for.
  void passTicket(const void* used = nullptr);

  /// Ends the session: the frame does not parse, and nothing after it can be trusted.
  CUresult refuseFrame();

 private:
  void passGate(Window window, CUstream stream, std::uint64_t bytes,
                std::initializer_list<std::uint64_t> shape) {
    if (window == Window::marker && session.gate.letsMarkerPass()) return;
    if (window == Window::small && bytes > wire::kSmallCopyBytes) return session.gate.copied(bytes);
    pass_.enter(stream, shape);
  }
  void awaitWindowOrCapture(Window window, CUstream stream, std::uint64_t bytes,
                            std::initializer_list<std::uint64_t> shape);
  /// The traced work has been submitted, or refused.
  void endTraced(bool submitted);

  /// Whether the handle ends with the current context. Functions of a module end with the module,
  /// and a function's module has the function's context.
  static bool endsWithContext(wire::HandleKind kind, std::uint64_t parent) {
    using enum wire::HandleKind;
    const wire::HandleKind of = wire::handleKind(parent);
    return kind == stream || kind == event || kind == array || kind == mipmappedArray ||
           kind == textureReference || kind == surfaceReference ||
           (kind == module && of != function) || (kind == function && of == kernel);
  }
  template <class T>
  static constexpr bool isCode = std::is_same_v<T, CUfunction> || std::is_same_v<T, CUkernel> ||
                                 std::is_same_v<T, CUlibrary> || std::is_same_v<T, CUmodule>;
  /// The frame uses code, which the driver loads at the first use in this context. Fast if it was
  /// used before.
  void usesCode(std::uint64_t handle) const {
    if (used_[handle / 2 % used_.size()] != handle) [[unlikely]]
      usesCodeAnew(handle);
  }
  void usesCodeAnew(std::uint64_t handle) const;
  void unload(std::uint64_t image);
  std::uint64_t ownerHandle() const;
  /// Clears the caches of launched functions and used code, which are valid for one context.
  void forgetLaunched() { launched_.fill({}), used_.fill(0); }
  /// Waits for the frame's turn. False after the session's end, or if the client violated the
  /// order.
  bool awaitTurn(const wire::FrameHeader& header);
  void leaveTurn(bool submitted = true);
  bool continuesRow(const wire::FrameHeader& header) const;
  bool rowGoesOn() const;
  /// Lets the GPU tell the client itself that the current frame, a wait, has ended.
  bool followToClient(CUstream stream);
  void endRow();
  CUresult earlierError();
  void finish(const wire::FrameHeader& header, const wire::Encoder& reply, CUresult status);

  std::unique_ptr<wire::WorkerChannel> channel_;
  RegisteredReply registeredReply_;
  Gate::Pass pass_;
  Uses::Slot use_;
  wire::FrameHeader frame_{};  ///< the current one
  std::uint64_t ticket_ = 0;
  bool shares_ = false;            ///< the ticket is shared
  bool failedBefore_ = false;      ///< the reply brings the error of an earlier call
  std::uint64_t row_ = 0;          ///< shared tickets that were served and not passed yet
  std::uint64_t rowTurn_ = 0;      ///< their turn
  std::uint64_t launches_ = 0;     ///< of the row
  std::uint64_t frames_ = 1;       ///< number of the current frame
  std::uint64_t launchFrame_ = 0;  ///< number of the last frame that launched a kernel
  CUstream launchedInto_ = nullptr;
  std::uint64_t copyFrame_ = 0;   ///< number of the last frame that noteCopy() recorded
  std::uint64_t wordTicket_ = 0;  ///< of the copy that the completion word followed
  bool awaitsCopies_ = false;     ///< the client waited right behind the last such copy
  unsigned roundTrips_ = 0;
  bool traced_ = false;  ///< the frame has begun `work_`
  Timeline::Work work_;
  CUstream workStream_ = nullptr;
  std::array<std::pair<CUfunction, CUstream>, 64> launched_{};  ///< by the bits of their addresses
  unsigned codeChanges_ = 0;  ///< value of the session's counter when these were launched
  mutable std::array<std::uint64_t, 64>
      used_{};  ///< code in this context, by the bits of its handle
  mutable std::optional<HeldMemory::Reading> beforeCode_;  ///< before the current frame loaded any
  mutable std::uint64_t image_ = 0;                        ///< image that the current frame loads
  bool ended_ = false;
  Readers::Reader reader_;  ///< ends first: the end of the others may wait for the GPU
};

template <class T>
CUresult Thread::find(std::uint64_t handle, T* object) const {
  if constexpr (std::is_same_v<T, CUstream>) {
    if (handle <= 2) return *object = reinterpret_cast<CUstream>(handle), CUDA_SUCCESS;
  }
  if constexpr (std::is_same_v<T, CUcontext>) {
    if (handle == 0) return *object = nullptr, CUDA_SUCCESS;
  }
  void* found = session.handles.find(HandleOf<T>::kind, handle);
  // CUDA takes a kernel wherever it takes a function.
  if constexpr (std::is_same_v<T, CUfunction>) {
    if (found == nullptr) found = session.handles.find(wire::HandleKind::kernel, handle);
  }
  if (found == nullptr)
    return std::is_same_v<T, CUcontext> ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
  if constexpr (isCode<T>) usesCode(handle);
  *object = (T)found;
  return CUDA_SUCCESS;
}

/// Starts the thread of a client thread, whose channel lies in the memory file; ends the session
/// when it may not have one.
/// `answersFaults`: the client's thread answers page faults. The first such thread of a session is
/// the interposer's own, so no limit counts it.
void serveChannel(Session& session, int channelFile, bool answersFaults);

}  // namespace worker
