// Pools with a simulated driver that grows them by steps of 32 MiB, and gives freed memory back
// only when it is trimmed or synchronized with.
#include "native/worker/accounts/pool_account.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "native/worker/test/quota_file.h"

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLimit = 100 * kMiB;
std::uint64_t step = worker::PoolAccount::kStep;  ///< by which pools grow

struct FakePool {
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
};
std::map<CUmemoryPool, FakePool> pools;
std::uint64_t pending = 0;  ///< freed from pool 1, but not reached by its stream

CUmemoryPool handle(std::uintptr_t number) { return reinterpret_cast<CUmemoryPool>(number); }

CUresult getAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const auto& [reserved, used] = pools.at(pool);
  *static_cast<cuuint64_t*>(value) =
      attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? used : reserved;
  return CUDA_SUCCESS;
}

/// Setting an attribute releases nothing.
CUresult setAttribute(CUmemoryPool pool, CUmemPool_attribute, void*) {
  return pools.contains(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult trimTo(CUmemoryPool pool, size_t) {
  FakePool& found = pools.at(pool);
  found.reserved = (found.used + step - 1) / step * step;
  return CUDA_SUCCESS;
}

CUresult synchronize() {
  pools[handle(1)].used -= std::exchange(pending, 0);
  return CUDA_SUCCESS;
}

std::map<CUdeviceptr, std::pair<CUmemoryPool, std::uint64_t>> allocated;

CUresult freeAsync(CUdeviceptr address, CUstream) {
  const auto [pool, bytes] = allocated.at(address);
  pools.at(pool).used -= bytes;
  return CUDA_SUCCESS;
}

CUresult streamSynchronize(CUstream) { return synchronize(); }

CUresult destroyPool(CUmemoryPool pool) {
  return pools.erase(pool) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// The default pool and the chosen one are pool 2.
CUresult getPool(CUmemoryPool* pool, CUdevice) { return *pool = handle(2), CUDA_SUCCESS; }
CUresult setPool(CUdevice, CUmemoryPool) { return CUDA_ERROR_UNKNOWN; }

struct Fixture {
  worker::Driver driver{};
  worker::Quota quota;
  worker::Captures captures{driver};
  worker::PoolMemory own{driver, captures, {}};
  worker::PoolAccount account{driver, quota, own};
  CUdeviceptr next = 0x100;
  int refused = 0;
  std::function<void()> whileAllocating, whileWaiting;

  Fixture() {
    pools = {{handle(1), {}}, {handle(2), {}}};
    driver.cuMemPoolGetAttribute = getAttribute;
    driver.cuMemPoolSetAttribute = setAttribute;
    driver.cuMemPoolTrimTo = trimTo;
    driver.cuMemFreeAsync = freeAsync;
    driver.cuStreamSynchronize = streamSynchronize;
    driver.cuMemPoolDestroy = destroyPool;
    driver.cuDeviceGetMemPool = driver.cuDeviceGetDefaultMemPool = getPool;
    driver.cuDeviceSetMemPool = setPool;
    const std::string path = worker::test::makeQuotaFile(kLimit);
    CHECK(quota.open(path, 0, kLimit).empty());
    unlink(path.c_str());
    quota.setRefused([this](std::uint64_t) { ++refused; });
  }

  std::uint64_t used() const { return quota.used() / kMiB; }

  /// Returns the address, or 0 if there is no room.
  CUdeviceptr allocate(std::uintptr_t number, std::uint64_t mebibytes) {
    const std::uint64_t bytes = mebibytes * kMiB;
    CUdeviceptr address = 0;
    const auto call = [&] {
      if (whileAllocating) whileAllocating();
      FakePool& pool = pools[handle(number)];
      pool.used += bytes;
      pool.reserved = std::max(pool.reserved, (pool.used + step - 1) / step * step);
      address = next += 0x100;
      allocated[address] = {handle(number), bytes};
      return CUDA_SUCCESS;
    };
    const auto wait = [&] {
      if (whileWaiting) whileWaiting();
      return synchronize();
    };
    const CUresult status = account.allocate(handle(number), bytes, nullptr, &address, call, wait);
    CHECK((status == CUDA_ERROR_OUT_OF_MEMORY ? 1 : 0) == std::exchange(refused, 0));
    return status == CUDA_SUCCESS ? address : 0;
  }

  void free(CUdeviceptr address, std::uint64_t mebibytes) {
    CUresult status = CUDA_ERROR_UNKNOWN;
    CHECK(account.free(
        address, [&] { return pending += mebibytes * kMiB, CUDA_SUCCESS; }, status));
    CHECK(status == CUDA_SUCCESS);
  }
};

TEST_CASE("a pool's reserved memory is charged") {
  Fixture test;
  const CUdeviceptr first = test.allocate(1, 10);
  CHECK(first != 0);
  CHECK(test.used() == 32);
  CHECK(test.allocate(1, 20) != 0);
  CHECK(test.used() == 32);  // it fits into the pool
  CHECK(test.allocate(1, 10) != 0);
  CHECK(test.used() == 64);
  test.free(first, 10);
  CHECK(test.used() == 64);  // the stream has not reached the free
  synchronize();
  trimTo(handle(1), 0);
  CHECK(test.account.settle());
  CHECK(test.used() == 32);
}

TEST_CASE("an allocation whose step does not fit is undone") {
  Fixture test;
  CHECK(test.quota.charge(50 * kMiB));
  CHECK(test.allocate(1, 10) != 0);
  CHECK(test.used() == 82);
  CHECK(test.allocate(1, 25) == 0);
  CHECK(test.used() == 82);  // 35 would fit, 64 do not
  CHECK(pools[handle(1)].used == 10 * kMiB);
  CHECK(pools[handle(1)].reserved == 32 * kMiB);
  CHECK(test.allocate(1, 22) != 0);
  CHECK(test.used() == 82);
}

TEST_CASE("a whole step is charged before the pool grows") {
  Fixture test;
  std::uint64_t before = 0;
  test.whileAllocating = [&] { before = test.used(); };
  CHECK(test.allocate(1, 1) != 0);
  CHECK(before == 32);
  CHECK(test.allocate(1, 40) != 0);
  CHECK(before == 64);
}

// Until its stream frees it, nobody else gets the rest.
TEST_CASE("growth by more than a step is charged until it is undone") {
  Fixture test;
  step = 64 * kMiB;
  CHECK(test.quota.charge(60 * kMiB));
  std::uint64_t meanwhile = 0;
  test.whileWaiting = [&] { meanwhile = test.used(); };
  CHECK(test.allocate(1, 10) == 0);
  CHECK(meanwhile == 124);
  CHECK(test.used() == 60);
  step = worker::PoolAccount::kStep;
}

// In the same pool and for other pools; pending frees are waited for.
TEST_CASE("freed memory that a pool keeps is reclaimed") {
  Fixture test;
  const CUdeviceptr all = test.allocate(1, 96);
  CHECK(all != 0);
  CHECK(test.used() == 96);
  CHECK(test.allocate(2, 10) == 0);
  test.free(all, 96);
  CHECK(test.used() == 96);
  CHECK(pending == 96 * kMiB);
  CHECK(test.allocate(2, 60) != 0);
  CHECK(pending == 0);
  CHECK(test.used() == 64);
  test.quota.setReclaim([&] { test.account.trim(); });
  pools[handle(2)].used = 0;
  CHECK(test.quota.charge(kLimit));
  CHECK(test.quota.used() == kLimit);
}

TEST_CASE("a destroyed pool is charged until its last allocation is free") {
  Fixture test;
  test.account.created(handle(1), 0);
  const CUdeviceptr one = test.allocate(1, 10);
  const CUdeviceptr other = test.allocate(1, 40);
  const auto destroy = [&](std::uintptr_t number) {
    return test.account.destroy(handle(number), [&] { return destroyPool(handle(number)); });
  };
  CHECK(destroy(1) == CUDA_SUCCESS);
  CHECK(pools.contains(handle(1)));
  CHECK(test.account.settle());
  CHECK(test.used() == 64);
  CHECK(test.allocate(1, 10) == 0);
  test.free(other, 40);
  CHECK(test.account.settle());
  CHECK(test.used() == 64);  // the stream has not reached the free
  synchronize();
  CHECK(test.account.settle());
  CHECK(test.used() == 32);
  test.free(one, 10);
  CHECK(test.account.settle());
  CHECK(test.used() == 32);
  CHECK(pools.contains(handle(1)));
  synchronize();
  CHECK(!test.account.settle());
  CHECK(test.used() == 0);
  CHECK(!pools.contains(handle(1)));
  CUresult status = CUDA_SUCCESS;
  CHECK(!test.account.free(
      other, [] { return CUDA_SUCCESS; }, status));
  // An empty pool is destroyed at once; of other pools, the driver decides.
  test.account.created(handle(2), 0);
  CHECK(destroy(2) == CUDA_SUCCESS);
  CHECK(!pools.contains(handle(2)));
  CHECK(test.account.destroy(handle(2), [] { return CUDA_ERROR_UNKNOWN; }) == CUDA_ERROR_UNKNOWN);
}

}  // namespace
