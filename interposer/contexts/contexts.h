// The contexts of this process: live handles, and constant properties.
#pragma once

#include <cstdint>
#include <functional>

#include "cuda_abi.h"

namespace interposer {

struct ContextRecord {
  CUdevice device = 0;
  bool primary = false;
  bool live = false;      ///< false: destroyed, or a primary context without a retain
  unsigned retained = 0;  ///< of a primary context
  unsigned flags = 0;
  unsigned attached = 0;       ///< cuCtxAttach less cuCtxDetach
  unsigned apiVersion = 3020;  ///< what the driver reports (recorded)
  std::uint8_t bits = 0;       ///< in the handles of what ends with it (wire/handle_table.h)
  std::uint64_t id = 0;        ///< unique in the process, as cuCtxGetId promises
};

/// The record of a context handle as a copy; false for a number that never was one. Null names the
/// calling thread's current context.
bool findContext(CUcontext context, ContextRecord& record);
/// Runs change(record) on the calling thread's current context. The error if there is none.
CUresult changeCurrentContext(const std::function<CUresult(ContextRecord&)>& change);
/// Whether the context existed and has ended; false if unknown.
bool isDestroyed(CUcontext context);
/// The error of a call that names an unknown object: it may have ended with the current context.
CUresult unknownHandle();
/// Session::ready(), for a call that needs a current context.
CUresult readyInContext();
/// The device of the calling thread's current context; CUDA_ERROR_INVALID_CONTEXT when there is
/// none.
CUresult currentDevice(CUdevice* device);
/// Whether the stream is one of a context's default streams, those without a handle of their own.
bool isDefault(CUstream stream);
/// Whether it is the default stream that waits for others of its context.
bool isLegacy(CUstream stream);
/// The thread's last call was a wait for the stream, or a copy with it that has ended
/// (last_wait.h). `now`: monotonic time in ns.
void noteWaited(CUstream stream, std::uint64_t now);
/// Whether the stream surely is of the calling thread's current context.
bool isOfCurrentContext(CUstream stream);
/// Whether event and stream surely are of one context, as the driver requires of a record.
bool areOfOneContext(CUevent event, CUstream stream);
/// The handle of a device's primary context, the same before and after it is retained.
CUcontext primaryContext(CUdevice device);

/// Records a green context's context as alive, or as ended. Its memory is the primary context's.
void contextMade(CUcontext context, CUdevice device);
void contextEnded(CUcontext context);

/// A counter that changes when a context is created or destroyed, because a handle may then mean
/// another context in the worker, and when its limits are set.
unsigned contextChanges();
void contextChanged();

/// Whether the program ever had an event that other processes can use.
bool sharesEvents();

}  // namespace interposer
