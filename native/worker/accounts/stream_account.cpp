#include "native/worker/accounts/stream_account.h"

#include "native/worker/session/in_context.h"

namespace worker {

CUresult StreamAccount::make(CUcontext context, CUstream* stream,
                             const std::function<CUresult()>& make) {
  if (bytes_ == 0) return make();
  const std::lock_guard lock(mutex_);
  Context& counted = contexts_[context];
  if (counted.live == counted.charged) destroyIdle(context, counted);
  const bool more = counted.live == counted.charged;
  if (more && !quota_.charge(bytes_)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = make();
  if (status != CUDA_SUCCESS) {
    if (more) quota_.refund(bytes_);
    return status;
  }
  streams_[*stream] = context;
  ++counted.live;
  if (more) ++counted.charged;
  return status;
}

void StreamAccount::destroyIdle(CUcontext context, Context& counted) const {
  if (counted.ending.empty()) return;
  const InContext current(driver_, context);
  if (current.status() != CUDA_SUCCESS) return;
  counted.live -= std::erase_if(counted.ending, [&](CUstream stream) {
    const bool idle = driver_.cuStreamQuery(stream) != CUDA_ERROR_NOT_READY;
    if (idle) driver_.cuStreamDestroy_v2(stream);
    return idle;
  });
}

/// A captured stream may have work from before the capture: its charge stays until the context
/// ends.
CUresult StreamAccount::destroy(CUstream stream, bool captured) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return driver_.cuStreamDestroy_v2(stream);
  Context& counted = contexts_[found->second];
  const RelaxedCapture relaxed(driver_);
  const bool busy = !captured && driver_.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
  const CUresult status = busy ? CUDA_SUCCESS : driver_.cuStreamDestroy_v2(stream);
  if (status != CUDA_SUCCESS) return status;
  if (busy) counted.ending.push_back(stream);
  if (!busy && !captured) --counted.live;
  streams_.erase(found);
  return status;
}

void StreamAccount::ended(CUcontext context) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return;
  quota_.refund(found->second.charged * bytes_);
  contexts_.erase(found);
  std::erase_if(streams_, [&](const auto& entry) { return entry.second == context; });
}

}  // namespace worker
