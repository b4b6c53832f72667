#include "native/worker/accounts/stream_account.h"

namespace worker {

CUresult StreamAccount::make(CUcontext context, CUstream* stream,
                             const std::function<CUresult()>& make) {
  if (bytes_ == 0) return make();
  const std::lock_guard lock(mutex_);
  Context& counted = contexts_[context];
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

void StreamAccount::destroyed(CUstream stream) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  --contexts_[found->second].live;
  streams_.erase(found);
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
