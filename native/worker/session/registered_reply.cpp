#include "native/worker/session/registered_reply.h"

#include "native/worker/session/captures.h"

namespace worker {

RegisteredReply::~RegisteredReply() {
  if (!unregister()) (void)channel_.release();
}

bool RegisteredReply::prepare(unsigned contextsEnded, bool waits) {
  if (registered_ && contextsEnded == contextsEnded_) [[likely]]
    return true;
  unregister();  // the context that registered it may still exist
  // A thread without a channel has its replies elsewhere.
  if (refused_ || channel_ == nullptr || (++uses_ < kUsesBefore && !waits)) return false;
  const auto memory = channel_->replyMemory();
  const RelaxedCapture relaxed(driver_);
  const CUresult status = driver_.cuMemHostRegister_v2(
      memory.data(), memory.size(), CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  registered_ = status == CUDA_SUCCESS;
  refused_ = !registered_ && status != CUDA_ERROR_INVALID_CONTEXT;  // the copy returns that, too
  contextsEnded_ = contextsEnded;
  return registered_;
}

bool RegisteredReply::unregister() {
  if (!registered_) return true;
  registered_ = false;
  uses_ = 0;
  const RelaxedCapture relaxed(driver_);  // the thread may end beside others
  return driver_.cuMemHostUnregister(channel_->replyMemory().data()) == CUDA_SUCCESS;
}

}  // namespace worker
