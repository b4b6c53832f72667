// Code images against the quota. A context holds some memory for code before any is loaded, and the node provides for that; what
// images take beyond it counts.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "native/worker/quota.h"

namespace worker {

class ImageAccount {
 public:
  /// Of a session, bytes.
  static constexpr std::uint64_t kProvided = std::uint64_t{8} << 20;

  explicit ImageAccount(Quota& quota) : quota_(quota) {}

  /// False when the quota has no room for an image of that size; nothing is charged then.
  bool charge(std::uint64_t bytes);
  void refund(std::uint64_t bytes);

  /// The image is loaded, under this handle. It ends with its owner (the context of a module; a library has none) if not before.
  void remember(std::uint64_t handle, std::uint64_t bytes, const void* owner);
  /// It is unloaded; nothing happens when it is not known.
  void forget(std::uint64_t handle);
  void forgetOwned(const void* owner);

 private:
  struct Loaded {
    std::uint64_t bytes;
    const void* owner;
  };
  static std::uint64_t beyond(std::uint64_t total) { return total > kProvided ? total - kProvided : 0; }

  Quota& quota_;
  std::mutex mutex_;
  std::uint64_t total_ = 0;
  std::unordered_map<std::uint64_t, Loaded> images_;  ///< by handle
};

}  // namespace worker
