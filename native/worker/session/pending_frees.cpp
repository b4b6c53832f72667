#include "native/worker/session/pending_frees.h"

#include <algorithm>

namespace worker {

/// If the context of the stream ends first, the driver does not call back, and the small object is
/// lost.
CUresult PendingFrees::add(const Driver& driver, CUstream stream, CUdeviceptr address,
                           const Quota::Charge& charge) {
  using Reference = std::shared_ptr<Pending>;
  auto pending = std::make_shared<Pending>();
  auto* reference = new Reference(pending);
  const auto reached = [](void* argument) {
    const std::unique_ptr<Reference> given(static_cast<Reference*>(argument));
    (*given)->reached.store(true, std::memory_order_release);
  };
  const auto freed = memory_.freeBehind(address, stream, &pending->memory);
  if (freed && *freed != CUDA_SUCCESS) return delete reference, *freed;
  const CUresult status = driver.cuLaunchHostFunc(stream, reached, reference);
  if (status != CUDA_SUCCESS) delete reference;
  if (status != CUDA_SUCCESS && !freed) return status;
  if (!freed) {
    const auto parted = memory_.part(address);
    if (!parted) return CUDA_ERROR_INVALID_VALUE;
    pending->memory = *parted;
  }
  CUcontext context = nullptr;
  if (driver.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS) pending->stream = context;
  pending->owner = charge.owner;
  quota_.remember(pending->key(), charge.bytes, charge.owner);
  const std::lock_guard lock(mutex_);
  list_.push_back(std::move(pending));
  return CUDA_SUCCESS;
}

bool PendingFrees::any() const {
  const std::lock_guard lock(mutex_);
  return !list_.empty();
}

bool PendingFrees::settle() {
  const std::lock_guard one(settling_);
  return paused_ ? any() : settleNow();
}

void PendingFrees::pause() {
  const std::lock_guard one(settling_);
  settleNow();
  paused_ = true;
}

void PendingFrees::goOn() {
  const std::lock_guard one(settling_);
  paused_ = false;
}

bool PendingFrees::settleNow() {
  std::vector<std::shared_ptr<Pending>> reached;
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    const auto rest = std::partition(list_.begin(), list_.end(), [](const auto& pending) {
      return !pending->reached.load(std::memory_order_acquire);
    });
    reached.assign(rest, list_.end());
    list_.erase(rest, list_.end());
    more = !list_.empty();
  }
  for (const auto& pending : reached) {
    memory_.release(pending->memory);
    slack_.settle();  // first, so that no byte is without a charge in between
    if (const auto charge = quota_.take(pending->key())) quota_.refund(charge->bytes);
  }
  return more;
}

void PendingFrees::contextEnded(const void* context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(list_, [&](const auto& pending) { return pending->owner == context; });
  for (const auto& pending : list_)
    if (pending->stream == context) pending->reached.store(true);
}

}  // namespace worker
