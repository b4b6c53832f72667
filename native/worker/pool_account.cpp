#include "native/worker/pool_account.h"

#include <algorithm>

namespace worker {

CUresult PoolAccount::allocate(CUmemoryPool handle, std::uint64_t bytes, CUstream stream, CUdeviceptr* address, const Call& call,
                               const Call& wait) {
  const std::lock_guard lock(mutex_);
  Pool& pool = poolOf(handle);
  if (!raise(pool, neededFor(pool, bytes))) {
    wait();
    trimAll();
    if (!raise(pool, neededFor(pool, bytes))) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult status = call();
  if (status != CUDA_SUCCESS || *address == 0) return settle(pool), status;
  allocations_[*address] = pools_[handle];
  ++pool.allocations;
  return correct(pool, *address, stream);
}

/// The pool has grown by a step, and that may be more than was reserved.
CUresult PoolAccount::correct(Pool& pool, CUdeviceptr address, CUstream stream) {
  const std::uint64_t now = reserved(pool);
  if (raise(pool, now)) return lower(pool, now), CUDA_SUCCESS;
  trimAll();
  if (raise(pool, reserved(pool))) return settle(pool), CUDA_SUCCESS;
  driver_.cuMemFreeAsync(address, stream);
  driver_.cuStreamSynchronize(stream);
  forget(address, pool);
  trimAll();
  return CUDA_ERROR_OUT_OF_MEMORY;
}

bool PoolAccount::free(CUdeviceptr address, CUstream stream, const Call& call, CUresult& status) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
  const std::shared_ptr<Pool> pool = found->second;
  status = call();
  if (status != CUDA_SUCCESS) return true;
  forget(address, *pool);
  if (!pool->destroyed) return settle(*pool), true;
  if (pool->allocations > 0) return true;
  driver_.cuStreamSynchronize(stream);  // nobody can ask such a pool any more; its memory is free once this free was reached
  return lower(*pool, 0), true;
}

CUresult PoolAccount::change(CUmemoryPool handle, const Call& call) {
  const std::lock_guard lock(mutex_);
  const CUresult status = call();
  settle(poolOf(handle));
  return status;
}

CUresult PoolAccount::destroy(CUmemoryPool handle, const Call& call) {
  const std::lock_guard lock(mutex_);
  const CUresult status = call();
  const auto found = pools_.find(handle);
  if (status != CUDA_SUCCESS || found == pools_.end()) return status;
  found->second->destroyed = true;
  if (found->second->allocations == 0) lower(*found->second, 0);
  pools_.erase(found);
  return CUDA_SUCCESS;
}

bool PoolAccount::settle() {
  const std::lock_guard lock(mutex_);
  return settleAll();
}

bool PoolAccount::settleUnlessBusy() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return !lock.owns_lock() || settleAll();
}

bool PoolAccount::settleAll() {
  for (auto& [handle, pool] : pools_) settle(*pool);
  return std::ranges::any_of(pools_, [](const auto& entry) { return entry.second->charged > 0; });
}

void PoolAccount::trim() {
  const std::lock_guard lock(mutex_);
  trimAll();
}

PoolAccount::Pool& PoolAccount::poolOf(CUmemoryPool handle) {
  auto& pool = pools_[handle];
  if (pool == nullptr) pool = std::make_shared<Pool>(Pool{handle});
  return *pool;
}

/// What it is charged with when the driver does not say.
std::uint64_t PoolAccount::reserved(const Pool& pool) const {
  cuuint64_t bytes = 0;
  const CUresult status = driver_.cuMemPoolGetAttribute(pool.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
  return status == CUDA_SUCCESS ? bytes : pool.charged;
}

std::uint64_t PoolAccount::neededFor(const Pool& pool, std::uint64_t bytes) const {
  cuuint64_t used = 0;
  driver_.cuMemPoolGetAttribute(pool.handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
  const std::uint64_t most = ~std::uint64_t{0} - used;
  return std::max<std::uint64_t>(reserved(pool), used + std::min(bytes, most));
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

void PoolAccount::settle(Pool& pool) {
  const std::uint64_t now = reserved(pool);
  if (raise(pool, now)) lower(pool, now);
}

void PoolAccount::trimAll() {
  for (auto& [handle, pool] : pools_) {
    driver_.cuMemPoolTrimTo(handle, 0);
    settle(*pool);
  }
}

void PoolAccount::forget(CUdeviceptr address, Pool& pool) {
  --pool.allocations;
  allocations_.erase(address);  // the pool lives: whoever calls holds it
}

}  // namespace worker
