#include "native/worker/accounts/reserve_account.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "native/worker/test/quota_file.h"

namespace {

CUcontext current = nullptr;
CUresult answer = CUDA_SUCCESS;

CUcontext context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number); }

worker::Driver driverOfTwoLimits() {
  worker::Driver driver{};
  driver.cuCtxGetCurrent = [](CUcontext* context) { return *context = current, CUDA_SUCCESS; };
  driver.cuCtxGetLimit = [](std::size_t* value, CUlimit limit) {
    return *value = limit == CU_LIMIT_MALLOC_HEAP_SIZE ? 8 : 2, CUDA_SUCCESS;
  };
  driver.cuCtxSetLimit = [](CUlimit, std::size_t) { return answer; };
  return driver;
}

TEST_CASE("a raised limit of a context is charged until the context ends") {
  const worker::Driver driver = driverOfTwoLimits();
  worker::Quota quota;
  worker::ReserveAccount reserves(driver, quota, 100, std::identity{});
  current = context(1);
  CHECK(reserves.setLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 28) == CUDA_SUCCESS);
  CHECK(quota.used() == 20);
  CHECK(reserves.setLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 3) == CUDA_SUCCESS);
  CHECK(quota.used() == 21);
  CHECK(reserves.setLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 1000) == CUDA_SUCCESS);
  CHECK(quota.used() == 21);

  // A limit whose memory is unknown can only be lowered.
  constexpr auto kUnknown = static_cast<CUlimit>(99);
  CHECK(reserves.setLimit(kUnknown, 3) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(reserves.setLimit(kUnknown, 2) == CUDA_SUCCESS);
  CHECK(worker::ReserveAccount::isUnknown(kUnknown));
  CHECK(quota.used() == 21);

  // A synchronization depth is refused, as by a driver that has none.
  CHECK(reserves.setLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 3) == CUDA_ERROR_UNSUPPORTED_LIMIT);
  CHECK(quota.used() == 21);

  // The charge is that of the highest value; a value that the driver refuses costs nothing.
  for (const std::size_t value : {4, 28, 4, 28})
    reserves.setLimit(CU_LIMIT_MALLOC_HEAP_SIZE, value);
  CHECK(quota.used() == 21);
  answer = CUDA_ERROR_INVALID_VALUE;
  CHECK(reserves.setLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 128) == CUDA_ERROR_INVALID_VALUE);
  CHECK(quota.used() == 21);
  answer = CUDA_SUCCESS;

  current = context(2);
  CHECK(reserves.setLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 9) == CUDA_SUCCESS);
  CHECK(quota.used() == 22);
  reserves.ended(context(1));
  reserves.ended(context(1));
  CHECK(quota.used() == 1);
  reserves.ended(context(2));
  CHECK(quota.used() == 0);
}

std::size_t launches = 2048;
std::size_t mostLaunches = 599186;

worker::Driver driverOfLaunches() {
  worker::Driver driver = driverOfTwoLimits();
  driver.cuCtxGetLimit = [](std::size_t* value, CUlimit) {
    return *value = launches, CUDA_SUCCESS;
  };
  driver.cuCtxSetLimit = [](CUlimit, std::size_t value) {
    if (answer == CUDA_SUCCESS) launches = std::clamp<std::size_t>(value, 32, mostLaunches);
    return answer;
  };
  return driver;
}

constexpr std::uint64_t kPage = 2 << 20;

TEST_CASE("pending launches are charged by what an H200 takes") {
  constexpr CUlimit kLimit = CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT;
  const worker::Driver driver = driverOfLaunches();
  worker::Quota quota;
  worker::ReserveAccount reserves(driver, quota, 100, std::identity{});
  current = context(1);

  // Pages that an H200 took (driver 580.159, 2026-11-23): the charge is at most one page more.
  const std::pair<std::size_t, std::uint64_t> measured[] = {
      {0, 0},        {1000, 0},     {2048, 0},      {2049, 2},      {2842, 4},      {3000, 5},
      {4096, 9},     {4097, 11},    {8192, 28},     {10000, 37},    {20000, 82},    {65536, 284},
      {100000, 439}, {131072, 577}, {262144, 1163}, {300000, 1333}, {599186, 2671}, {1 << 20, 2671},
      {~0UL, 2671},  {65536, 284},  {2048, 0}};
  for (const auto& [value, pages] : measured) {
    CHECK(reserves.setLimit(kLimit, value) == CUDA_SUCCESS);
    CHECK(quota.used() >= pages * kPage);
    CHECK(quota.used() <= (pages == 0 ? 0 : pages + 1) * kPage);
  }
  CHECK(launches == 2048);
  CHECK(quota.used() == 0);

  // The driver lowers the value further, the driver refuses, the context ends.
  mostLaunches = 4096;
  CHECK(reserves.setLimit(kLimit, 65536) == CUDA_SUCCESS);
  CHECK(launches == 4096);
  CHECK(quota.used() == 10 * kPage);
  answer = CUDA_ERROR_INVALID_VALUE;
  CHECK(reserves.setLimit(kLimit, 65536) == answer);
  CHECK(reserves.setLimit(kLimit, 0) == answer);
  CHECK(quota.used() == 10 * kPage);
  answer = CUDA_SUCCESS;
  mostLaunches = 599186;
  reserves.ended(context(1));
  CHECK(quota.used() == 0);
}

TEST_CASE("a limit beyond the quota is refused") {
  constexpr CUlimit kLimit = CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT;
  const worker::Driver driver = driverOfLaunches();
  worker::Quota quota;
  const std::string path = worker::test::makeQuotaFile(20 * kPage);
  CHECK(quota.open(path, 0, 20 * kPage).empty());
  unlink(path.c_str());
  worker::ReserveAccount reserves(driver, quota, 100, std::identity{});
  current = context(1);
  launches = 2048;
  for (const std::size_t value : {std::size_t{65536}, ~std::size_t{0}}) {
    CHECK(reserves.setLimit(kLimit, value) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(launches == 2048);
    CHECK(quota.used() == 0);
  }
  CHECK(reserves.setLimit(kLimit, 4096) == CUDA_SUCCESS);
  CHECK(quota.used() == 10 * kPage);
  CHECK(reserves.setLimit(kLimit, 65536) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(launches == 4096);
  CHECK(quota.used() == 10 * kPage);
}

TEST_CASE("the heap of a context is charged once") {
  const worker::Driver driver = driverOfTwoLimits();
  worker::Quota quota;
  const std::string path = worker::test::makeQuotaFile(250);
  CHECK(quota.open(path, 0, 250).empty());
  unlink(path.c_str());
  worker::ReserveAccount reserves(driver, quota, 100, std::identity{});
  current = nullptr;
  CHECK(reserves.takeHeap());
  CHECK(quota.used() == 100);
  current = context(1);
  CHECK(reserves.takeHeap());
  CHECK(reserves.takeHeap());
  CHECK(quota.used() == 200);
  current = context(2);
  CHECK(!reserves.takeHeap());
  CHECK(quota.used() == 200);
  CHECK(reserves.setLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 59) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(quota.used() == 200);
  reserves.ended(context(1));
  CHECK(quota.used() == 100);
  CHECK(reserves.takeHeap());
  CHECK(quota.used() == 200);
}

}  // namespace
