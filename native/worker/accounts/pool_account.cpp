#include "native/worker/accounts/pool_account.h"

#include <algorithm>
#include <utility>

#include "native/worker/session/captures.h"

namespace worker {

PoolAccount::PoolAccount(const Driver& driver, Quota& quota, PoolMemory& own)
    : driver_(driver), quota_(quota), own_(own) {
  own.setMayGrow(
      [this](CUmemoryPool handle, std::uint64_t reserved) { return mayGrow(handle, reserved); });
}

void PoolAccount::created(CUmemoryPool handle, CUdevice device) {
  const std::lock_guard lock(mutex_);
  pools_[handle] = std::make_shared<Pool>(Pool{handle, device});
}

/// The driver may give the pool that it has already given for the same descriptor.
void PoolAccount::imported(CUmemoryPool handle, unsigned entry, std::shared_ptr<void> companion) {
  const std::lock_guard lock(mutex_);
  auto& pool = pools_[handle];
  pool = std::make_shared<Pool>(Pool{handle});
  pool->entry = entry;
  pool->companion = std::move(companion);
}

std::optional<unsigned> PoolAccount::importedFrom(CUmemoryPool handle) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(handle);
  return found == pools_.end() ? std::nullopt : found->second->entry;
}

std::pair<CUmemoryPool, std::uint64_t> PoolAccount::poolOf(CUdeviceptr address) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.pool->ended) return {nullptr, 0};
  return {found->second.pool->handle, found->second.bytes};
}

bool PoolAccount::lives(CUmemoryPool handle) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(handle);
  return found != pools_.end() && found->second->device && !found->second->ended;
}

CUresult PoolAccount::allocate(CUmemoryPool handle, std::uint64_t bytes, CUstream stream,
                               CUdeviceptr* address, const Call& call, const Call& wait) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Pool> pool = poolOf(handle);
  if (pool->entry) return CUDA_ERROR_INVALID_VALUE;  // nothing is allocated from imported pools
  if (own_.isOwn(handle)) {
    const CUresult status = allocateOwn(lock, *pool, call, wait, bytes);
    if (status == CUDA_SUCCESS && *address != 0) allocations_[*address] = {pool, bytes};
    return status;
  }
  bool room = makeRoom(*pool, bytes);
  if (!room) {
    lock.unlock();
    wait();
    lock.lock();
    trimAll();
    room = makeRoom(*pool, bytes);
  }
  if (pool->ended) return CUDA_ERROR_INVALID_VALUE;
  if (!room) return quota_.refuse(bytes), CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = call();
  if (status != CUDA_SUCCESS || *address == 0) return settle(*pool), status;
  if (fits(*pool)) return allocations_[*address] = {pool, bytes}, CUDA_SUCCESS;
  driver_.cuMemFreeAsync(*address, stream);
  lock.unlock();
  wait();
  driver_.cuStreamSynchronize(stream);
  lock.lock();
  trimAll();
  quota_.refuse(bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

/// The pool of a growth is locked, because it grows in allocateOwn() only.
bool PoolAccount::mayGrow(CUmemoryPool handle, std::uint64_t reserved) {
  const bool grows = raise(*poolOf(handle), reserved);
  refused_ = refused_ || !grows;
  return grows;
}

CUresult PoolAccount::allocateOwn(std::unique_lock<std::mutex>& lock, Pool& pool, const Call& call,
                                  const Call& wait, std::uint64_t bytes) {
  const auto allocate = [&] {
    refused_ = false;
    const CUresult status = pool.ended ? CUDA_ERROR_INVALID_VALUE : call();
    if (pool.handle != nullptr) settle(pool);
    return status;
  };
  CUresult status = allocate();
  if (status != CUDA_ERROR_OUT_OF_MEMORY) return status;
  lock.unlock();
  wait();
  lock.lock();
  trimAll();
  status = allocate();
  if (status == CUDA_ERROR_OUT_OF_MEMORY && refused_) quota_.refuse(bytes);
  return status;
}

bool PoolAccount::makeRoom(Pool& pool, std::uint64_t bytes) {
  return !pool.ended && raise(pool, neededFor(pool, bytes));
}

/// The pool may have grown by more than the bytes charged. The growth is charged even if the
/// allocation is undone, because the stream frees it only later.
bool PoolAccount::fits(Pool& pool) {
  bool fits = raise(pool, reserved(pool));
  if (!fits) {
    trimAll();
    fits = raise(pool, reserved(pool));
  }
  settle(pool);
  return fits;
}

/// Removes the record before the address is freed, because another thread may get the address at
/// once.
bool PoolAccount::free(CUdeviceptr address, const Call& call, CUresult& status) {
  std::unique_lock lock(mutex_);
  const auto found = allocations_.extract(address);
  if (found.empty()) return false;
  const std::shared_ptr<Pool> pool = found.mapped().pool;
  lock.unlock();
  status = call();
  lock.lock();
  if (status != CUDA_SUCCESS) return allocations_[address] = found.mapped(), true;
  if (pool->handle != nullptr) settle(*pool);
  return true;
}

CUresult PoolAccount::change(CUmemoryPool handle, const Call& call) {
  const std::lock_guard lock(mutex_);
  const CUresult status = call();
  settle(*poolOf(handle));
  return status;
}

CUresult PoolAccount::destroy(CUmemoryPool handle, const Call& call) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Pool> pool = poolOf(handle);
  if (pool->device) {
    const RelaxedCapture relaxed(driver_);
    driver_.cuMemPoolTrimTo(handle, 0);
    if (reserved(*pool) > 0) return end(*pool), CUDA_SUCCESS;
  }
  const CUresult status = call();
  if (status != CUDA_SUCCESS) return status;
  lower(*pool, 0);
  pool->ended = true;
  pool->handle = nullptr;
  pools_.erase(handle);
  return CUDA_SUCCESS;
}

/// Marks the pool as destroyed for the program. Its device goes back to the default pool, and the
/// pool releases memory as soon as it is freed.
void PoolAccount::end(Pool& pool) {
  cuuint64_t nothing = 0;
  driver_.cuMemPoolSetAttribute(pool.handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &nothing);
  CUmemoryPool current = nullptr;
  const bool chosen =
      driver_.cuDeviceGetMemPool(&current, *pool.device) == CUDA_SUCCESS && current == pool.handle;
  if (chosen && driver_.cuDeviceGetDefaultMemPool(&current, *pool.device) == CUDA_SUCCESS)
    driver_.cuDeviceSetMemPool(*pool.device, current);
  pool.ended = true;
}

void PoolAccount::destroyEmpty() {
  std::erase_if(pools_, [&](const auto& entry) {
    const auto& [handle, pool] = entry;
    if (!pool->ended || pool->charged > 0) return false;
    driver_.cuMemPoolDestroy(handle);
    pool->handle = nullptr;
    return true;
  });
}

bool PoolAccount::settle() {
  const std::lock_guard lock(mutex_);
  return settleAll();
}

bool PoolAccount::settleUnlessBusy() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  for (auto& [handle, pool] : pools_) settle(*pool);
  return holdMemory();
}

bool PoolAccount::settleAll() {
  const RelaxedCapture relaxed(driver_);
  for (auto& [handle, pool] : pools_) {
    if (pool->ended) driver_.cuMemPoolTrimTo(handle, 0);
    settle(*pool);
  }
  destroyEmpty();
  return holdMemory();
}

bool PoolAccount::holdMemory() const {
  return std::ranges::any_of(pools_, [](const auto& entry) { return entry.second->charged > 0; });
}

void PoolAccount::trim() {
  const std::lock_guard lock(mutex_);
  trimAll();
}

std::shared_ptr<PoolAccount::Pool> PoolAccount::poolOf(CUmemoryPool handle) {
  auto& pool = pools_[handle];
  if (pool == nullptr) pool = std::make_shared<Pool>(Pool{handle});
  return pool;
}

/// Bytes that the pool has reserved; its charge if the driver does not report them. 0 for an
/// imported pool.
std::uint64_t PoolAccount::reserved(const Pool& pool) const {
  if (pool.entry) return 0;
  cuuint64_t bytes = 0;
  const CUresult status =
      driver_.cuMemPoolGetAttribute(pool.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
  return status == CUDA_SUCCESS ? bytes : pool.charged;
}

/// Bytes that the pool will have reserved after the allocation, since it grows in whole steps.
std::uint64_t PoolAccount::neededFor(const Pool& pool, std::uint64_t bytes) const {
  cuuint64_t used = 0;
  driver_.cuMemPoolGetAttribute(pool.handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
  const std::uint64_t most = ~std::uint64_t{0} - kStep - used;
  const std::uint64_t wanted = used + std::min(bytes, most);
  return std::max<std::uint64_t>(reserved(pool), (wanted + kStep - 1) / kStep * kStep);
}

bool PoolAccount::raise(Pool& pool, std::uint64_t to) {
  if (to <= pool.charged) return true;
  if (!quota_.chargeAtOnce(to - pool.charged)) return false;
  pool.charged = to;
  return true;
}

void PoolAccount::lower(Pool& pool, std::uint64_t to) {
  if (to >= pool.charged) return;
  quota_.refund(pool.charged - to);
  pool.charged = to;
}

/// Sets the charge to what the pool holds, even beyond the limit.
void PoolAccount::settle(Pool& pool) {
  const std::uint64_t now = reserved(pool);
  if (now > pool.charged) quota_.chargeBeyond(now - std::exchange(pool.charged, now));
  lower(pool, now);
}

void PoolAccount::trimAll() {
  const RelaxedCapture relaxed(driver_);
  for (auto& [handle, pool] : pools_) {
    if (pool->entry) continue;
    driver_.cuMemPoolTrimTo(handle, 0);
    lower(*pool, reserved(*pool));
  }
  destroyEmpty();
}

}  // namespace worker
