// Memory pools against the quota. A pool keeps memory that the program has freed, and grows in steps of its own, so what counts is what it
// has reserved on the device, not what was allocated from it. Pools are the device's: what they hold outlives every context, the primary
// one too (recorded by test/conformance/programs/pools_and_contexts.cu).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "driver.h"
#include "native/worker/quota.h"

namespace worker {

/// Thread-safe. Calls that make a pool grow go through here, one at a time. Nothing is waited for meanwhile: what would end the wait may be
/// another thread's call.
class PoolAccount {
 public:
  PoolAccount(const Driver& driver, Quota& quota) : driver_(driver), quota_(quota) {}

  using Call = std::function<CUresult()>;

  /// The program has made the pool: it may destroy it.
  void created(CUmemoryPool pool, CUdevice device);

  /// `call` allocates `bytes` from the pool in the stream and sets `address`. Room in the quota is reserved before, and corrected by what
  /// the pool has grown. When there is none, `wait` is called, which waits for the frees that are under way; then what is unused is given
  /// back.
  CUresult allocate(CUmemoryPool pool, std::uint64_t bytes, CUstream stream, CUdeviceptr* address, const Call& call, const Call& wait);

  /// `call` frees an address, and may wait. False when the address is of no pool; `status` is left alone then.
  bool free(CUdeviceptr address, const Call& call, CUresult& status);

  /// `call` trims the pool, or changes it otherwise.
  CUresult change(CUmemoryPool pool, const Call& call);

  /// `call` destroys the pool. One that holds memory is destroyed later, when the streams have freed the last of it: a destroyed pool holds
  /// that too, and cannot be asked any more how much it is.
  CUresult destroy(CUmemoryPool pool, const Call& call);

  /// Gives back what pools have released meanwhile; true when some still hold memory.
  bool settle();
  /// The same for the thread that must never wait: it only asks. True also when the pools are busy.
  bool settleUnlessBusy();

  /// Has the pools release what they do not use.
  void trim();

 private:
  struct Pool {
    CUmemoryPool handle;                            ///< null: the driver has it no more
    std::optional<CUdevice> device = std::nullopt;  ///< of one that the program made
    bool ended = false;                             ///< for the program
    std::uint64_t charged = 0;
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

  const Driver& driver_;
  Quota& quota_;
  std::mutex mutex_;
  std::map<CUmemoryPool, std::shared_ptr<Pool>> pools_;
  std::unordered_map<CUdeviceptr, std::shared_ptr<Pool>> allocations_;
};

}  // namespace worker
