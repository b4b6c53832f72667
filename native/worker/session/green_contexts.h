// Green contexts of a session, and the resources that the driver has described to the client.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "cuda_abi.h"

namespace worker {

/// Thread-safe.
class GreenContexts {
 public:
  /// A client may give back only what the driver gave: its resources hold fields that only the
  /// driver knows. False if it has been given too many different ones.
  bool give(const CUdevResource& resource) {
    const std::lock_guard lock(mutex_);
    return given_.contains(bytesOf(resource)) ||
           (given_.size() < kMostResources && given_.insert(bytesOf(resource)).second);
  }
  bool gave(const CUdevResource& resource) const {
    const std::lock_guard lock(mutex_);
    return given_.contains(bytesOf(resource));
  }

  void made(CUgreenCtx green, CUcontext context) {
    const std::lock_guard lock(mutex_);
    contexts_[green] = context;
    any_ = true;
  }
  void ended(CUgreenCtx green) {
    const std::lock_guard lock(mutex_);
    contexts_.erase(green);
  }
  /// The context that the green context was converted to; null if it is unknown.
  CUcontext contextOf(CUgreenCtx green) const {
    const std::lock_guard lock(mutex_);
    const auto found = contexts_.find(green);
    return found == contexts_.end() ? nullptr : found->second;
  }
  /// Whether the context is a green one, whose streams and events do not end with it.
  bool includes(CUcontext context) const {
    if (!any_.load(std::memory_order_relaxed)) return false;
    const std::lock_guard lock(mutex_);
    for (const auto& [green, converted] : contexts_) {
      if (converted == context) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kMostResources = 4096;
  using Bytes = std::array<std::byte, sizeof(CUdevResource)>;

  static Bytes bytesOf(const CUdevResource& resource) {
    Bytes bytes;
    std::memcpy(bytes.data(), &resource, bytes.size());
    return bytes;
  }

  mutable std::mutex mutex_;
  std::set<Bytes> given_;
  std::map<CUgreenCtx, CUcontext> contexts_;
  std::atomic<bool> any_{false};
};

}  // namespace worker
