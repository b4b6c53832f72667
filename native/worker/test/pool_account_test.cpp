// Pools before a driver that grows them by steps of 32 MiB, and lets go of freed memory only when
// it is trimmed or synchronized with.
#include "native/worker/accounts/pool_account.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "native/worker/test/quota_file.h"
#include "wire/test/check.h"

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

/// These release nothing by themselves.
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
  worker::PoolAccount account{driver, quota};
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

  /// The address, or 0 when there is no room.
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
              address, [&] { return pending += mebibytes * kMiB, CUDA_SUCCESS; }, status) &&
          status == CUDA_SUCCESS);
  }
};

void testReservedCounts() {
  Fixture test;
  const CUdeviceptr first = test.allocate(1, 10);
  CHECK(first != 0 && test.used() == 32);
  CHECK(test.allocate(1, 20) != 0 && test.used() == 32);  // fits into what the pool has
  CHECK(test.allocate(1, 10) != 0 && test.used() == 64);
  test.free(first, 10);
  CHECK(test.used() == 64);  // the stream is not there yet
  synchronize();
  trimTo(handle(1), 0);
  CHECK(test.account.settle() && test.used() == 32);
}

/// What a step is too large for is undone.
void testUndone() {
  Fixture test;
  CHECK(test.quota.charge(50 * kMiB));
  CHECK(test.allocate(1, 10) != 0 && test.used() == 82);
  CHECK(test.allocate(1, 25) == 0 && test.used() == 82);  // 35 would fit, 64 do not
  CHECK(pools[handle(1)].used == 10 * kMiB && pools[handle(1)].reserved == 32 * kMiB);
  CHECK(test.allocate(1, 22) != 0 && test.used() == 82);
}

/// Room for a whole step is charged before the pool grows.
void testStepIsCharged() {
  Fixture test;
  std::uint64_t before = 0;
  test.whileAllocating = [&] { before = test.used(); };
  CHECK(test.allocate(1, 1) != 0 && before == 32);
  CHECK(test.allocate(1, 40) != 0 && before == 64);
}

/// A pool that grows by more than a step is undone. It counts until its stream frees it: meanwhile
/// nobody else gets what is left.
void testCountedUntilUndone() {
  Fixture test;
  step = 64 * kMiB;
  CHECK(test.quota.charge(60 * kMiB));
  std::uint64_t meanwhile = 0;
  test.whileWaiting = [&] { meanwhile = test.used(); };
  CHECK(test.allocate(1, 10) == 0 && meanwhile == 124 && test.used() == 60);
  step = worker::PoolAccount::kStep;
}

/// Freed memory that a pool keeps makes room, in the same pool and for others, and pending frees
/// are waited for.
void testReclaimed() {
  Fixture test;
  const CUdeviceptr all = test.allocate(1, 96);
  CHECK(all != 0 && test.used() == 96 && test.allocate(2, 10) == 0);
  test.free(all, 96);
  CHECK(test.used() == 96 && pending == 96 * kMiB);
  CHECK(test.allocate(2, 60) != 0 && pending == 0 && test.used() == 64);
  test.quota.setReclaim([&] { test.account.trim(); });
  pools[handle(2)].used = 0;
  CHECK(test.quota.charge(kLimit) && test.quota.used() == kLimit);
}

/// A pool that the program has destroyed costs until its last allocation is free, and only then is
/// it gone.
void testDestroyed() {
  Fixture test;
  test.account.created(handle(1), 0);
  const CUdeviceptr one = test.allocate(1, 10);
  const CUdeviceptr other = test.allocate(1, 40);
  const auto destroy = [&](std::uintptr_t number) {
    return test.account.destroy(handle(number), [&] { return destroyPool(handle(number)); });
  };
  CHECK(destroy(1) == CUDA_SUCCESS && pools.contains(handle(1)));
  CHECK(test.account.settle() && test.used() == 64 && test.allocate(1, 10) == 0);
  test.free(other, 40);
  CHECK(test.account.settle() && test.used() == 64);  // the stream is not there yet
  synchronize();
  CHECK(test.account.settle() && test.used() == 32);
  test.free(one, 10);
  CHECK(test.account.settle() && test.used() == 32 && pools.contains(handle(1)));
  synchronize();
  CHECK(!test.account.settle() && test.used() == 0 && !pools.contains(handle(1)));
  CUresult status = CUDA_SUCCESS;
  CHECK(!test.account.free(
      other, [] { return CUDA_SUCCESS; }, status));
  // An empty one goes at once; one that is not the program's, as the driver says.
  test.account.created(handle(2), 0);
  CHECK(destroy(2) == CUDA_SUCCESS && !pools.contains(handle(2)));
  CHECK(test.account.destroy(handle(2), [] { return CUDA_ERROR_UNKNOWN; }) == CUDA_ERROR_UNKNOWN);
}

}  // namespace

int main() {
  testReservedCounts();
  testUndone();
  testStepIsCharged();
  testCountedUntilUndone();
  testReclaimed();
  testDestroyed();
  return wire::test::checkedResult();
}
