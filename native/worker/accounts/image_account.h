// Charges code images. A context already holds some memory for code; only what images take beyond
// that counts.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "native/worker/accounts/quota.h"

namespace worker {

class ImageAccount {
 public:
  /// Bytes of code that a session has without a charge.
  static constexpr std::uint64_t kProvided = std::uint64_t{8} << 20;

  explicit ImageAccount(Quota& quota) : quota_(quota) {}

  /// False when the quota has no room for an image of that size; nothing is charged then.
  bool charge(std::uint64_t bytes);
  void refund(std::uint64_t bytes);

  /// The image is loaded, under this handle. It ends with its owner (the context of a module; a
  /// library has none) if not before.
  void remember(std::uint64_t handle, std::uint64_t bytes, const void* owner);
  /// The image was unloaded. Unknown handles are ignored.
  void forget(std::uint64_t handle);
  void forgetOwned(const void* owner);

 private:
  struct Loaded {
    std::uint64_t bytes;
    const void* owner;
  };
  static std::uint64_t beyond(std::uint64_t total) {
    return total > kProvided ? total - kProvided : 0;
  }

  Quota& quota_;
  std::mutex mutex_;
  std::uint64_t total_ = 0;
  std::unordered_map<std::uint64_t, Loaded> images_;  ///< by handle
};

}  // namespace worker
