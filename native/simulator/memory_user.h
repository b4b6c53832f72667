// Lets memory be unmapped while kernels and copies run. They check an address once and then access
// it without a lock, so whoever unmaps memory must know when no checked address is in use.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace simulator {

/// A thread that accesses memory whose address it has checked. Belongs to one thread. It must not
/// wait for other work of the program, because revokeMemory() waits for it.
class MemoryUser {
 public:
  MemoryUser();
  ~MemoryUser();  ///< its thread uses no checked address any more
  MemoryUser(const MemoryUser&) = delete;
  MemoryUser& operator=(const MemoryUser&) = delete;

  /// Called often, where its thread uses no checked address. True if memory was revoked since the
  /// last call: addresses must then be checked again.
  bool revoked() {
    const std::uint64_t now = revocations.load(std::memory_order_acquire);
    if (now == seen_) [[likely]]
      return false;
    acknowledge(now);
    return true;
  }

 private:
  friend void revokeMemory();
  /// The last revocation that the user knows. Shared, so that waiting outlives the user.
  using Known = std::atomic<std::uint64_t>;
  void acknowledge(std::uint64_t revocation);

  inline static std::atomic<std::uint64_t> revocations{0};
  std::uint64_t seen_;
  std::shared_ptr<Known> known_;
};

/// Called after a change after which checks of addresses fail. Returns when no user accesses an
/// address that it has checked before. Does not wait for the end of kernels or copies.
void revokeMemory();

}  // namespace simulator
