// Green contexts of a session, and the resources that the driver has described to the client.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
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

  /// `released`: the client has not retained the primary context.
  void made(CUgreenCtx green, CUcontext context, CUdevice device, bool released) {
    const std::lock_guard lock(mutex_);
    contexts_[green] = {context, device};
    if (released) released_.insert(device);
    any_ = true;
  }
  /// The device whose primary context nothing keeps any more, if there is one.
  std::optional<CUdevice> ended(CUgreenCtx green) {
    const std::lock_guard lock(mutex_);
    const auto found = contexts_.extract(green);
    if (!found) return std::nullopt;
    const CUdevice device = found.mapped().device;
    if (lives(device) || released_.erase(device) == 0) return std::nullopt;
    return device;
  }
  /// The device of a green context that lives.
  CUdevice deviceOf(CUgreenCtx green) const {
    const std::lock_guard lock(mutex_);
    const auto found = contexts_.find(green);
    return found == contexts_.end() ? CUdevice{-1} : found->second.device;
  }
  /// The client has released the device's primary context, or retains it (again). Whether green
  /// contexts keep it alive.
  bool keepPrimary(CUdevice device, bool released) {
    const std::lock_guard lock(mutex_);
    if (!released) released_.erase(device);
    if (!lives(device)) return false;
    if (released) released_.insert(device);
    return true;
  }
  /// The context that the green context was converted to; null if it is unknown.
  CUcontext contextOf(CUgreenCtx green) const {
    const std::lock_guard lock(mutex_);
    const auto found = contexts_.find(green);
    return found == contexts_.end() ? nullptr : found->second.context;
  }
  /// The device of a green context that lives. What is made while it is current does not end with
  /// it, but with the device's primary context.
  std::optional<CUdevice> deviceOf(CUcontext context) const {
    if (!any_.load(std::memory_order_relaxed)) return std::nullopt;
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        contexts_, [&](const auto& entry) { return entry.second.context == context; });
    return found == contexts_.end() ? std::nullopt : std::optional(found->second.device);
  }

 private:
  static constexpr std::size_t kMostResources = 4096;
  using Bytes = std::array<std::byte, sizeof(CUdevResource)>;

  static Bytes bytesOf(const CUdevResource& resource) {
    Bytes bytes;
    std::memcpy(bytes.data(), &resource, bytes.size());
    return bytes;
  }

  struct Green {
    CUcontext context;
    CUdevice device;
  };
  bool lives(CUdevice device) const {
    return std::ranges::any_of(contexts_,
                               [&](const auto& entry) { return entry.second.device == device; });
  }

  mutable std::mutex mutex_;
  std::set<Bytes> given_;
  std::map<CUgreenCtx, Green> contexts_;
  std::set<CUdevice> released_;  ///< primary contexts that only green ones keep
  std::atomic<bool> any_{false};
};

}  // namespace worker
