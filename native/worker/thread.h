// The worker's side of one client thread: it receives frames, has them dispatched, and replies. Also what the generated dispatch and the
// hand-written bodies work with.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>

#include "cuda_abi.h"
#include "driver.h"
#include "handle_kinds.h"
#include "native/worker/completion_word.h"
#include "native/worker/gate.h"
#include "native/worker/session.h"
#include "wire/channel.h"
#include "wire/copy.h"

namespace worker {

/// Which work needs a window of the GPU's time (`window` in cuda-api/calls/): all of a kind, or only small copies, since large ones run
/// beside whatever the GPU computes.
enum class Window { always, small };

class Thread {
 public:
  Thread(Session& owner, std::unique_ptr<wire::WorkerChannel> channel)
      : session(owner), driver(owner.driver), completion(owner.driver), channel_(std::move(channel)), pass_(owner.gate) {}

  Session& session;
  const Driver& driver;
  CompletionWord completion;

  /// The frame at hand launched a kernel into this stream.
  void noteLaunch(CUstream stream) { launchedInto_ = stream, launchFrame_ = frames_; }
  /// Whether the frame before this one launched a kernel into the stream.
  bool justLaunched(CUstream stream) const { return launchFrame_ + 1 == frames_ && launchedInto_ == stream; }

  /// Serves until the client's thread ends or breaks the protocol.
  void serve();

  /// The driver's object behind a handle. 0, 1 and 2 are streams that need no table, 0 is no context.
  template <class T>
  CUresult find(std::uint64_t handle, T* object) const;

  /// The handle for a new object of the driver, which ends with `parent` (a handle, or 0), and with the current context if it is of one.
  template <class T>
  std::uint64_t add(wire::HandleKind kind, T object, std::uint64_t parent = 0) {
    return session.handles.add(kind, (void*)object, parent, endsWithContext(kind, parent) ? currentContext() : 0);
  }

  /// Whether no object may be made that needs a handle: CUDA_ERROR_OUT_OF_MEMORY then, before the driver makes one.
  bool full() const { return session.handlesUsedUp(); }

  /// Right before work is given to the driver: returns when the session may use the GPU. `shape` is what the work's duration depends on.
  void awaitWindow(Window window, CUstream stream, std::uint64_t bytes, std::initializer_list<std::uint64_t> shape) {
    if (window == Window::always || bytes <= wire::kSmallCopyBytes) pass_.enter(stream, shape);
  }
  /// Another context is current now.
  void contextChanged() { pass_.contextChanged(), forgetLaunched(); }
  /// The driver's object is about to be destroyed.
  template <class T>
  void ends(T object) {
    if constexpr (requires { session.gate.forget(object); }) session.gate.forget(object);
  }

  /// Whether the quota has room for the local memory of a kernel that is about to be launched. Quick for one that was launched before.
  bool localMemoryFits(std::uint64_t handle, CUfunction function);

  /// Lets the next call of the session go: for a body that is about to wait in the driver. What it has submitted is past the gate.
  void passTicket();

  /// A frame that does not parse: the session ends, since nothing after it can be trusted.
  CUresult refuseFrame();

 private:
  /// A function of a module ends with that, and the module of a function with that one: whatever context is current, they have the same.
  static bool endsWithContext(wire::HandleKind kind, std::uint64_t parent) {
    using enum wire::HandleKind;
    const wire::HandleKind of = wire::handleKind(parent);
    return kind == stream || kind == event || (kind == module && of != function) || (kind == function && of == kernel);
  }
  /// Its handle; 0 without one.
  std::uint64_t currentContext() const;
  /// What was found out of functions means nothing in another context.
  void forgetLaunched() { launched_.fill(nullptr); }
  void finish(const wire::FrameHeader& header, const wire::Encoder& reply, CUresult status);

  std::unique_ptr<wire::WorkerChannel> channel_;
  Gate::Pass pass_;
  std::uint64_t ticket_ = 0;
  std::uint64_t frames_ = 1;       ///< the number of the one at hand
  std::uint64_t launchFrame_ = 0;  ///< the last that launched
  CUstream launchedInto_ = nullptr;
  unsigned roundTrips_ = 0;
  std::array<CUfunction, 64> launched_{};  ///< by the bits of their address
  unsigned codeChanges_ = 0;               ///< of the session, when these were launched
  bool ended_ = false;
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
  if (found == nullptr) return std::is_same_v<T, CUcontext> ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
  *object = (T)found;
  return CUDA_SUCCESS;
}

}  // namespace worker
