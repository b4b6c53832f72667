// Events. A record or wait that the driver may refuse is not enqueued. Nor is one of an event that
// other processes use: the program tells these by its own means that it has recorded the event, or
// waits for it, so the driver must have the call before it returns.
#include <atomic>
#include <mutex>
#include <unordered_set>

#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

struct SharedEvents {
  std::atomic<bool> any{false};  ///< was there ever one?
  std::mutex mutex;
  std::unordered_set<std::uint64_t> events;
};

SharedEvents& shared() {
  static SharedEvents* const instance = new SharedEvents;
  return *instance;
}

void noteShared(CUevent event) {
  const std::lock_guard lock(shared().mutex);
  shared().events.insert(number(event));
  shared().any.store(true, std::memory_order_release);
}

bool isShared(CUevent event) {
  if (!sharesEvents()) return false;
  const std::lock_guard lock(shared().mutex);
  return shared().events.contains(number(event));
}

}  // namespace

bool sharesEvents() { return shared().any.load(std::memory_order_acquire); }

CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) {
  if (phEvent == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = remote::cuEventCreate(phEvent, Flags);
  if (status == CUDA_SUCCESS && (Flags & CU_EVENT_INTERPROCESS) != 0) noteShared(*phEvent);
  return status;
}

CUresult cuIpcOpenEventHandle(CUevent* phEvent, CUipcEventHandle handle) {
  if (phEvent == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = remote::cuIpcOpenEventHandle(phEvent, handle);
  if (status == CUDA_SUCCESS) noteShared(*phEvent);
  return status;
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
  const CUresult status = remote::cuEventDestroy_v2(hEvent);
  if (status != CUDA_SUCCESS || !sharesEvents()) return status;
  const std::lock_guard lock(shared().mutex);
  shared().events.erase(number(hEvent));
  return status;
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  const Waiting waiting(isShared(hEvent) || !areOfOneContext(hEvent, hStream));
  return remote::cuEventRecord(hEvent, hStream);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  const Waiting waiting(flags != 0 || isShared(hEvent) || !areOfOneContext(hEvent, hStream));
  return remote::cuEventRecordWithFlags(hEvent, hStream, flags);
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  const Waiting waiting(Flags != 0 || isShared(hEvent));
  return remote::cuStreamWaitEvent(hStream, hEvent, Flags);
}

}  // namespace interposer
