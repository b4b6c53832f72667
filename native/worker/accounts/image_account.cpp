#include "native/worker/accounts/image_account.h"

namespace worker {

bool ImageAccount::charge(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!quota_.charge(beyond(total_ + bytes) - beyond(total_))) return false;
  total_ += bytes;
  return true;
}

void ImageAccount::refund(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  quota_.refund(beyond(total_) - beyond(total_ - bytes));
  total_ -= bytes;
}

void ImageAccount::remember(std::uint64_t handle, std::uint64_t bytes, const void* owner) {
  const std::lock_guard lock(mutex_);
  images_[handle] = {bytes, owner};
}

void ImageAccount::forget(std::uint64_t handle) {
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = images_.find(handle);
    if (found == images_.end()) return;
    bytes = found->second.bytes;
    images_.erase(found);
  }
  refund(bytes);
}

void ImageAccount::forgetOwned(const void* owner) {
  if (owner == nullptr) return;
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(images_, [&](const auto& entry) {
      const bool owned = entry.second.owner == owner;
      bytes += owned ? entry.second.bytes : 0;
      return owned;
    });
  }
  refund(bytes);
}

}  // namespace worker
