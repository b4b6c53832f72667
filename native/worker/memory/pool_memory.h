// Memory pools of the worker's own, in the place of the driver's, because the memory of those
// cannot leave the GPU. They reuse, grow and shrink as the driver's do.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "driver.h"
#include "native/worker/accounts/context_owner.h"
#include "native/worker/memory/movable_piece.h"
#include "native/worker/memory/pool_blocks.h"
#include "native/worker/session/captures.h"

namespace worker {

/// Thread-safe. The functions are those of the driver, for a session that sees one GPU. Pools that
/// other processes may get are the driver's, as is memory that a capture allocates. A handle of a
/// pool is the address of an object here, or of the driver's.
class PoolMemory {
 public:
  PoolMemory(const Driver& below, const Captures& captures, ContextOwner owner)
      : below_(below), captures_(captures), owner_(std::move(owner)) {}
  ~PoolMemory();
  PoolMemory(const PoolMemory&) = delete;
  PoolMemory& operator=(const PoolMemory&) = delete;

  /// Puts the functions in the place of the driver's. For one object of the process.
  void install(Driver& driver);
  /// Asks before a pool grows to so many bytes; false: it must not. It must not call this object.
  using MayGrow = std::function<bool(CUmemoryPool pool, std::uint64_t reserved)>;
  void setMayGrow(MayGrow mayGrow) { mayGrow_ = std::move(mayGrow); }

  /// Whether a pool is one of these.
  bool isOwn(CUmemoryPool handle) const;
  /// Bytes of all pools.
  std::uint64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }

  /// What the program asks about an address.
  struct Allocation {
    CUdeviceptr begin = 0;
    std::uint64_t bytes = 0;  ///< asked for
    std::uint64_t id = 0;     ///< never given again in this process
    CUmemoryPool pool = nullptr;
  };
  /// The allocation that an address lies in.
  std::optional<Allocation> find(CUdeviceptr address) const;
  /// Whether part of the range is memory of a pool.
  bool touches(CUdeviceptr address, std::uint64_t bytes) const;

  /// Frees memory that no work uses. False if it is of no pool here.
  bool free(CUdeviceptr begin);
  /// Work has been waited for: pools give back memory beyond their release threshold.
  void synchronized() {
    if (reserved() > 0) release();
  }
  /// Gives back to the GPU what no allocation has.
  void trim();
  /// The driver is about to destroy the context, with its events.
  void contextEnding(CUcontext context);
  /// The work of the context has ended, and so have its events.
  void contextEnded(CUcontext context);
  /// Appends the memory. The pieces are valid until the next other call.
  void addPieces(std::vector<MovablePiece>& pieces);

 private:
  /// Memory of one handle.
  struct Range {
    CUmemGenericAllocationHandle handle = 0;  ///< 0 while the memory is away
    std::uint64_t bytes = 0;
    CUdeviceptr area = 0;  ///< where its area begins
  };
  /// Reserved addresses, in which the pool grows upwards.
  struct Area {
    std::uint64_t bytes = 0;
    CUdeviceptr top = 0;  ///< end of its last range
    unsigned ranges = 0;
  };
  struct Pool {
    PoolBlocks blocks;
    std::map<CUdeviceptr, Range> ranges;
    std::map<CUdeviceptr, Area> areas;
    std::uint64_t most = 0;  ///< bytes; 0: what the GPU has
    std::uint64_t threshold = 0;
    std::uint64_t reserved = 0, reservedHigh = 0;
    std::uint64_t used = 0, usedHigh = 0;      ///< not counting what is free behind work
    std::map<CUmemPool_attribute, int> reuse;  ///< what the program has set
  };

  CUresult create(CUmemoryPool* handle, const CUmemPoolProps* properties);
  CUresult destroy(CUmemoryPool handle);
  CUresult current(CUmemoryPool* handle, CUdevice device) const;
  CUresult standard(CUmemoryPool* handle, CUdevice device) const;
  CUresult choose(CUdevice device, CUmemoryPool handle);
  CUresult get(CUmemoryPool handle, CUmemPool_attribute attribute, void* value);
  CUresult set(CUmemoryPool handle, CUmemPool_attribute attribute, void* value);
  CUresult setAccess(CUmemoryPool handle, const CUmemAccessDesc* access, std::size_t count);
  CUresult getAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location);
  CUresult trim(CUmemoryPool handle, std::size_t keep);
  CUresult allocate(CUdeviceptr* address, std::size_t bytes, CUstream stream);
  CUresult allocateFrom(CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle,
                        CUstream stream);
  CUresult allocateLocked(CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle,
                          CUstream stream);
  CUresult freeBehind(CUdeviceptr address, CUstream stream);

  Pool* find(CUmemoryPool handle) const;
  CUdeviceptr take(Pool& pool, std::uint64_t bytes, const PoolBlocks::Stream& stream);
  CUresult grow(Pool& pool, std::uint64_t bytes);
  CUresult growBy(Pool& pool, std::uint64_t bytes, std::uint64_t unit);
  CUresult addRange(Pool& pool, std::map<CUdeviceptr, Area>::iterator area, std::uint64_t bytes);
  void removeRange(Pool& pool, CUdeviceptr begin);
  void end(const Pool& pool) const;
  void forgetEnded(Pool& pool);
  void keepEvents(Pool& pool);
  void shrink(Pool& pool, std::uint64_t keep);
  void release();
  CUresult identify(CUstream stream, PoolBlocks::Stream* identity) const;
  std::optional<PoolBlocks::Work> workOf(CUstream stream, const PoolBlocks::Stream& identity);
  CUevent takeEvent(CUcontext context);
  CUresult freeByCallback(CUdeviceptr address, CUstream stream);
  bool give(CUdeviceptr begin, const PoolBlocks::Work& work);

  const Driver& below_;
  const Captures& captures_;
  const ContextOwner owner_;
  MayGrow mayGrow_ = [](CUmemoryPool, std::uint64_t) { return true; };
  mutable std::mutex mutex_;
  std::unique_ptr<Pool> standard_ = std::make_unique<Pool>();
  std::map<CUmemoryPool, std::unique_ptr<Pool>> pools_;  ///< that the program has made
  CUmemoryPool current_ = handleOf(*standard_);          ///< of the GPU
  std::map<CUdeviceptr, Allocation> allocations_;
  std::map<CUdeviceptr, std::uint64_t> ranges_;       ///< of all pools: begin -> bytes
  std::map<CUcontext, std::vector<CUevent>> events_;  ///< to be used again
  std::set<CUcontext> ending_;                        ///< their events are asked for nothing
  std::uint64_t lastId_ = 0;
  std::atomic<std::uint64_t> reserved_{0};

  static CUmemoryPool handleOf(Pool& pool) { return reinterpret_cast<CUmemoryPool>(&pool); }
};

}  // namespace worker
