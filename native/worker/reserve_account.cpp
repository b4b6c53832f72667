#include "native/worker/reserve_account.h"

namespace worker {

CUresult ReserveAccount::setLimit(CUlimit limit, std::size_t value) {
  const bool counts = limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE;
  std::size_t before = 0;
  if (!counts || driver_.cuCtxGetLimit(&before, limit) != CUDA_SUCCESS) return driver_.cuCtxSetLimit(limit, value);
  const std::lock_guard lock(mutex_);
  auto& [initial, charged] = current().limits.try_emplace(limit, Limit{before, 0}).first->second;
  const std::uint64_t more = value > initial + charged ? value - initial - charged : 0;
  if (!quota_.charge(more)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = driver_.cuCtxSetLimit(limit, value);
  if (status == CUDA_SUCCESS)
    charged += more;
  else
    quota_.refund(more);
  return status;
}

bool ReserveAccount::takeHeap() {
  const std::lock_guard lock(mutex_);
  bool& taken = current().heap;
  taken = taken || quota_.charge(heap_);
  return taken;
}

/// The one of no context is for libraries that are loaded before there is any.
ReserveAccount::Context& ReserveAccount::current() {
  CUcontext context = nullptr;
  driver_.cuCtxGetCurrent(&context);
  return contexts_[context];
}

void ReserveAccount::ended(CUcontext context) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return;
  for (const auto& [limit, reserved] : found->second.limits) quota_.refund(reserved.charged);
  if (found->second.heap) quota_.refund(heap_);
  contexts_.erase(found);
}

}  // namespace worker
