// Memory pools against the quota. A pool keeps memory that the program has freed, and grows in steps of its own, so what counts is what it
// has reserved on the device, not what was allocated from it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "driver.h"
#include "native/worker/quota.h"

namespace worker {

/// Thread-safe. Calls that change what a pool holds go through here, one at a time.
class PoolAccount {
 public:
  PoolAccount(const Driver& driver, Quota& quota) : driver_(driver), quota_(quota) {}

  using Call = std::function<CUresult()>;

  /// `call` allocates `bytes` from the pool in the stream and sets `address`. Room in the quota is reserved before, and corrected by what
  /// the pool has grown. When there is none, `wait` is called, which waits for the frees that are under way; then what is unused is given
  /// back.
  CUresult allocate(CUmemoryPool pool, std::uint64_t bytes, CUstream stream, CUdeviceptr* address, const Call& call, const Call& wait);

  /// `call` frees an address, in the stream or (null) at once. False when the address is of no pool; `status` is left alone then.
  bool free(CUdeviceptr address, CUstream stream, const Call& call, CUresult& status);

  /// `call` trims the pool, or changes it otherwise.
  CUresult change(CUmemoryPool pool, const Call& call);

  /// `call` destroys the pool, which lives on until the last of its allocations is freed.
  CUresult destroy(CUmemoryPool pool, const Call& call);

  /// Gives back what pools have released meanwhile; true when some still hold memory.
  bool settle();
  /// The same for the thread that must never wait; true also when the pools are busy.
  bool settleUnlessBusy();

  /// Has the pools release what they do not use.
  void trim();

 private:
  struct Pool {
    CUmemoryPool handle;
    std::uint64_t charged = 0;
    std::size_t allocations = 0;
    bool destroyed = false;
  };

  Pool& poolOf(CUmemoryPool handle);
  std::uint64_t reserved(const Pool& pool) const;
  std::uint64_t neededFor(const Pool& pool, std::uint64_t bytes) const;
  bool raise(Pool& pool, std::uint64_t to);
  void lower(Pool& pool, std::uint64_t to);
  void settle(Pool& pool);
  bool settleAll();
  void trimAll();
  CUresult correct(Pool& pool, CUdeviceptr address, CUstream stream);
  void forget(CUdeviceptr address, Pool& pool);

  const Driver& driver_;
  Quota& quota_;
  std::mutex mutex_;
  std::map<CUmemoryPool, std::shared_ptr<Pool>> pools_;                 ///< those with a handle
  std::unordered_map<CUdeviceptr, std::shared_ptr<Pool>> allocations_;  ///< keep destroyed ones too
};

}  // namespace worker
