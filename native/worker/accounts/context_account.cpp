#include "native/worker/accounts/context_account.h"

#include <algorithm>

namespace worker {

CUresult ContextAccount::make(CUdevice device, CUcontext* context,
                              const std::function<CUresult()>& make) {
  const std::lock_guard lock(mutex_);
  const bool first = std::ranges::none_of(
      contexts_, [&](const auto& entry) { return entry.second.device == device; });
  const std::uint64_t charged = first ? 0 : bytes_;
  if (!quota_.charge(charged)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = make();
  const bool made =
      status == CUDA_SUCCESS && contexts_.try_emplace(*context, Context{device, charged}).second;
  if (made)
    count(figures_.contexts);
  else
    quota_.refund(charged);
  return status;
}

void ContextAccount::ended(CUcontext context) {
  endings_.fetch_add(1, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  if (contexts_.contains(context)) quota_.forgetOwned(context);
  refund(context);
}

void ContextAccount::detached(CUcontext context) {
  const std::lock_guard lock(mutex_);
  refund(context);
}

void ContextAccount::refund(CUcontext context) {
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return;
  quota_.refund(found->second.charged);
  contexts_.erase(found);
  discount(figures_.contexts);
}

}  // namespace worker
