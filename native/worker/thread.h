// The worker's side of one client thread: it receives frames, has them dispatched, and replies. Also what the generated dispatch and the
// hand-written bodies work with.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "cuda_abi.h"
#include "driver.h"
#include "native/worker/session.h"
#include "wire/channel.h"
#include "wire/handle_table.h"

namespace worker {

class Thread {
 public:
  Thread(Session& owner, std::unique_ptr<wire::WorkerChannel> channel)
      : session(owner), driver(owner.driver), channel_(std::move(channel)) {}

  Session& session;
  const Driver& driver;

  /// Serves until the client's thread ends or breaks the protocol.
  void serve();

  /// The driver's object behind a handle. 0, 1 and 2 are streams that need no table, 0 is no context.
  template <class T>
  CUresult find(std::uint64_t handle, T* object) const;

  /// The handle for a new object of the driver, which ends with `parent` (a handle, or 0).
  template <class T>
  std::uint64_t add(wire::HandleKind kind, T object, std::uint64_t parent = 0) {
    return session.handles.add(kind, (void*)object, parent);
  }

  /// Whether no object may be made that needs a handle: CUDA_ERROR_OUT_OF_MEMORY then, before the driver makes one.
  bool full() const { return session.handlesUsedUp(); }

  /// Whether the quota has room for the local memory of a kernel that is about to be launched. Quick for one that was launched before.
  bool localMemoryFits(std::uint64_t handle, CUfunction function);
  /// Another context is current: what was found out of functions means nothing in it.
  void forgetLaunched() { launched_.fill(nullptr); }

  /// Lets the next call of the session go: for a body that is about to wait in the driver.
  void passTicket();

  /// A frame that does not parse: the session ends, since nothing after it can be trusted.
  CUresult refuseFrame();

 private:
  void finish(const wire::FrameHeader& header, const wire::Encoder& reply, CUresult status);

  std::unique_ptr<wire::WorkerChannel> channel_;
  std::uint64_t ticket_ = 0;
  unsigned roundTrips_ = 0;
  std::array<CUfunction, 64> launched_{};  ///< by the bits of their address
  unsigned codeChanges_ = 0;               ///< of the session, when these were launched
  bool ended_ = false;
};

/// Which kinds of handle a type of the API accepts.
template <class T>
struct HandleOf;
template <>
struct HandleOf<CUcontext> {
  static constexpr auto kind = wire::HandleKind::context;
};
template <>
struct HandleOf<CUmodule> {
  static constexpr auto kind = wire::HandleKind::module;
};
template <>
struct HandleOf<CUfunction> {
  static constexpr auto kind = wire::HandleKind::function;
};
template <>
struct HandleOf<CUlibrary> {
  static constexpr auto kind = wire::HandleKind::library;
};
template <>
struct HandleOf<CUkernel> {
  static constexpr auto kind = wire::HandleKind::kernel;
};
template <>
struct HandleOf<CUstream> {
  static constexpr auto kind = wire::HandleKind::stream;
};
template <>
struct HandleOf<CUevent> {
  static constexpr auto kind = wire::HandleKind::event;
};
template <>
struct HandleOf<CUmemoryPool> {
  static constexpr auto kind = wire::HandleKind::memoryPool;
};
template <>
struct HandleOf<CUmemGenericAllocationHandle> {
  static constexpr auto kind = wire::HandleKind::genericAllocation;
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
