// The quotas of an allocation, of GPU memory, of pinned host memory, of handles and threads: one file that all its workers map. Each worker
// has a slot with what it holds; the sum decides. A worker that dies leaves its slot to the proxy, which clears it once the process is
// truly gone (gpu-proxy/src/quota.ts).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace worker {

class Quota {
 public:
  Quota() = default;  // no limit
  ~Quota();
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  /// Maps the file; a sentence when it is not a quota file or the slot is out of range.
  std::string open(const std::string& path, unsigned slot, std::uint64_t limit);

  /// 0: no limit. Bytes.
  std::uint64_t limit() const { return limit_; }
  /// Bytes that all workers of the allocation hold.
  std::uint64_t used() const;
  /// The most that this worker has held.
  std::uint64_t peak() const;

  /// False when the bytes do not fit any more; nothing is charged then, and it is told.
  bool charge(std::uint64_t bytes);
  /// The same for who can still make room: nobody is told.
  bool tryCharge(std::uint64_t bytes);
  /// So many bytes were refused in the end: the function of setRefused() is called.
  void refuse(std::uint64_t bytes) const;
  void refund(std::uint64_t bytes);

  /// The same for pinned host memory, of which all workers of the allocation together may have `limit` bytes (0: any).
  bool chargePinned(std::uint64_t bytes, std::uint64_t limit);
  void refundPinned(std::uint64_t bytes);

  /// How many handles this worker's program has open; whoever counts them writes it here.
  std::atomic<std::uint32_t>& handles();
  /// Whether all workers of the allocation together have fewer of them than that.
  bool handlesLeft(std::uint64_t limit) const;
  /// One thread more of this worker's program. False, and nothing is charged, when all of the allocation together have so many already.
  bool chargeThread(std::uint64_t limit);
  void refundThread();

  /// Charges for something that is later known by its address, and that ends with its owner (a context) if not before.
  void remember(std::uint64_t key, std::uint64_t bytes, const void* owner);
  struct Charge {
    std::uint64_t bytes;
    const void* owner;
  };
  /// Takes it out before the address is given back, since somebody else may get that at once; then it is to be refunded, or remembered
  /// again. Nothing when it is not known.
  std::optional<Charge> take(std::uint64_t key);
  /// Refunds everything remembered for an owner.
  void forgetOwned(const void* owner);

  /// Called when there is no room for a charge, to make some; the charge is then tried once more. It may refund, and not charge.
  void setReclaim(std::function<void()> reclaim) { reclaim_ = std::move(reclaim); }
  /// Called with the bytes of each charge that was refused in the end.
  void setRefused(std::function<void(std::uint64_t)> refused) { refused_ = std::move(refused); }
  /// A charge as charge() does it, but with a call of neither function.
  bool chargeAtOnce(std::uint64_t bytes) { return chargeUpTo(limit_, bytes); }
  /// Charges what is held already, whatever the limit says: until it is given back, nobody gets more.
  void chargeBeyond(std::uint64_t bytes) { chargeUpTo(0, bytes); }

 private:
  bool chargeUpTo(std::uint64_t limit, std::uint64_t bytes);
  template <class Member, class Word>
  bool add(Member member, Word& own, Word amount, std::uint64_t limit);
  template <class Member, class Word>
  void subtract(Member member, Word& own, Word amount);

  struct File;
  File* file_ = nullptr;
  unsigned slot_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t ownUsed_ = 0;  ///< without a file
  std::uint64_t ownPeak_ = 0;
  std::uint64_t ownPinned_ = 0;
  std::atomic<std::uint32_t> ownHandles_{0};
  std::uint32_t ownThreads_ = 0;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Charge> charges_;
  std::function<void()> reclaim_;
  std::function<void(std::uint64_t)> refused_;
};

}  // namespace worker
