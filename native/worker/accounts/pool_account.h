// Charges memory pools. A pool caches freed memory and grows in steps, so its reserved bytes are
// charged, not its allocations. Pools belong to the device and outlive all contexts, also the
// primary one (recorded by test/conformance/programs/pools_and_contexts.cu).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "driver.h"
#include "native/worker/accounts/quota.h"
#include "native/worker/memory/pool_memory.h"

namespace worker {

/// Thread-safe. Serialises calls that make a pool grow. Never waits under the lock: the event
/// waited for may need another thread's call.
class PoolAccount {
 public:
  /// Our own pools ask for each growth; the driver's are charged as they are seen to grow.
  PoolAccount(const Driver& driver, Quota& quota, PoolMemory& own);

  /// Bytes by which a pool grows (seen on an H200, driver 580).
  static constexpr std::uint64_t kStep = std::uint64_t{32} << 20;

  using Call = std::function<CUresult()>;

  /// The program has made the pool: it may destroy it.
  void created(CUmemoryPool pool, CUdevice device);

  /// The pool is another worker's, which is charged for it, by its entry in the table of exports.
  /// `companion` ends with the pool.
  void imported(CUmemoryPool pool, unsigned entry, std::shared_ptr<void> companion);
  /// The entry of an imported pool.
  std::optional<unsigned> importedFrom(CUmemoryPool pool);
  /// The pool of an allocation, and its bytes. Null if the address is of none, or the pool is
  /// destroyed.
  std::pair<CUmemoryPool, std::uint64_t> poolOf(CUdeviceptr address);
  /// Whether the program has made the pool, and not destroyed it.
  bool lives(CUmemoryPool pool);

  /// `call` allocates `bytes` from the pool in the stream and sets `address`. The quota is charged
  /// first and corrected by the actual growth. If the quota is full, `wait` waits for pending
  /// frees; then unused memory is trimmed and the charge retried.
  CUresult allocate(CUmemoryPool pool, std::uint64_t bytes, CUstream stream, CUdeviceptr* address,
                    const Call& call, const Call& wait);

  /// `call` frees an address, and may wait. False when the address is of no pool; `status` is left
  /// alone then.
  bool free(CUdeviceptr address, const Call& call, CUresult& status);

  /// `call` trims the pool, or changes it otherwise.
  CUresult change(CUmemoryPool pool, const Call& call);

  /// `call` destroys the pool. A pool with live memory is destroyed later, when streams have freed
  /// all of it: after destruction the driver no longer reports its size.
  CUresult destroy(CUmemoryPool pool, const Call& call);

  /// Refunds what pools have released; true if some still hold memory.
  bool settle();
  /// The same, but never waits. Also true if the pools are busy.
  bool settleUnlessBusy();

  /// Trims all pools.
  void trim();

 private:
  struct Pool {
    CUmemoryPool handle;                            ///< null: the driver has it no more
    std::optional<CUdevice> device = std::nullopt;  ///< of one that the program made
    bool ended = false;                             ///< for the program
    std::uint64_t charged = 0;
    std::optional<unsigned> entry = std::nullopt;  ///< of an imported pool
    std::shared_ptr<void> companion = nullptr;
  };

  struct Allocation {
    std::shared_ptr<Pool> pool;
    std::uint64_t bytes;
  };

  std::shared_ptr<Pool> poolOf(CUmemoryPool handle);
  std::uint64_t reserved(const Pool& pool) const;
  std::uint64_t neededFor(const Pool& pool, std::uint64_t bytes) const;
  bool raise(Pool& pool, std::uint64_t to);
  void lower(Pool& pool, std::uint64_t to);
  bool makeRoom(Pool& pool, std::uint64_t bytes);
  bool fits(Pool& pool);
  void settle(Pool& pool);
  bool settleAll();
  bool holdMemory() const;
  void trimAll();
  void end(Pool& pool);
  void destroyEmpty();

  CUresult allocateOwn(std::unique_lock<std::mutex>& lock, Pool& pool, const Call& call,
                       const Call& wait, std::uint64_t bytes);
  bool mayGrow(CUmemoryPool handle, std::uint64_t reserved);

  const Driver& driver_;
  Quota& quota_;
  const PoolMemory& own_;
  std::mutex mutex_;
  bool refused_ = false;  ///< the quota had no room for a growth
  std::map<CUmemoryPool, std::shared_ptr<Pool>> pools_;
  std::unordered_map<CUdeviceptr, Allocation> allocations_;
};

}  // namespace worker
