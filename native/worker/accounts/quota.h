// Quotas of an allocation (GPU memory, pinned host memory, handles, threads) in one file that all
// its workers map. Each worker has a slot with what it holds; the sum is limited. The proxy clears
// the slot of a dead worker once the process has ended (gpu-proxy/src/allocations/quota.ts).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "native/worker/accounts/export_table.h"

namespace worker {

class Quota {
 public:
  Quota() = default;  // no limit
  ~Quota();
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  /// Maps the file. Returns an error message if it is not a quota file or the slot is out of range,
  /// else an empty string.
  std::string open(const std::string& path, unsigned slot, std::uint64_t limit);

  /// 0: no limit. Bytes.
  std::uint64_t limit() const { return limit_; }
  /// Exports between the workers of the allocation.
  ExportTable exports;
  /// Bytes that all workers of the allocation hold, exported memory of dead workers included.
  std::uint64_t used() const;
  /// Bytes that this worker holds.
  std::uint64_t own() const;
  /// Maximum of own() so far, in bytes.
  std::uint64_t peak() const;

  /// Charges the bytes. If they do not fit, charges nothing, reports it and returns false.
  bool charge(std::uint64_t bytes);
  /// The same without the report, for a caller that can still make room.
  bool tryCharge(std::uint64_t bytes);
  /// Reports a final refusal of so many bytes, through the function of setRefused().
  void refuse(std::uint64_t bytes) const;
  void refund(std::uint64_t bytes);

  /// The same for pinned host memory. `limit`: maximum bytes of all workers of the allocation; 0:
  /// no limit.
  bool chargePinned(std::uint64_t bytes, std::uint64_t limit);
  void refundPinned(std::uint64_t bytes);

  /// Open handles of this worker's program; written by the handle table.
  std::atomic<std::uint32_t>& handles();
  /// Whether all workers of the allocation together have fewer than `limit` handles.
  bool handlesLeft(std::uint64_t limit) const;
  /// Charges a thread. If all workers of the allocation together have `limit` threads already,
  /// charges nothing and returns false.
  bool chargeThread(std::uint64_t limit);
  void refundThread();

  /// Records a charge by address. It ends with its owner (a context) at the latest.
  void remember(std::uint64_t key, std::uint64_t bytes, const void* owner);
  struct Charge {
    std::uint64_t bytes;
    const void* owner;
  };
  /// The record of an address. Empty if unknown.
  std::optional<Charge> find(std::uint64_t key);
  /// Removes the record before the address is freed, because another thread may get the address at
  /// once. The caller then refunds it, or remembers it again. Empty if unknown.
  std::optional<Charge> take(std::uint64_t key);
  /// Refunds everything remembered for an owner.
  void forgetOwned(const void* owner);

  /// Sets the function that makes room when a charge fails; the charge is then retried once. The
  /// function may refund, but not charge.
  void setReclaim(std::function<void()> reclaim) { reclaim_ = std::move(reclaim); }
  /// Sets the function that is called with the bytes of each final refusal.
  void setRefused(std::function<void(std::uint64_t)> refused) { refused_ = std::move(refused); }
  /// Like charge(), but calls neither function.
  bool chargeAtOnce(std::uint64_t bytes) { return chargeUpTo(limit_, bytes); }
  /// Charges memory that is already held, even beyond the limit; then no further charge fits.
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
  std::uint64_t ownUsed_ = 0;  ///< used without a file
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
