#include "native/worker/session/registered_reply.h"

namespace worker {

RegisteredReply::~RegisteredReply() {
  if (!registration_.end()) (void)channel_.release();
}

bool RegisteredReply::prepare(unsigned contextsEnded, bool waits) {
  if (registration_.holds(contextsEnded)) [[likely]]
    return true;
  registration_.end();  // the context that registered it may still exist
  // A thread without a channel has its replies elsewhere.
  if (registration_.refused() || channel_ == nullptr || (++uses_ < kUsesBefore && !waits))
    return false;
  const auto memory = channel_->replyMemory();
  if (!registration_.begin(memory.data(), memory.size(), contextsEnded)) return false;
  uses_ = 0;
  return true;
}

}  // namespace worker
