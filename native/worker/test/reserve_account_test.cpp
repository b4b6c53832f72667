#include "native/worker/reserve_account.h"

#include "native/worker/test/quota_file.h"
#include "wire/test/check.h"

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

void testLimits() {
  const worker::Driver driver = driverOfTwoLimits();
  worker::Quota quota;
  worker::ReserveAccount reserves(driver, quota, 100);
  current = context(1);
  CHECK(reserves.setLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 28) == CUDA_SUCCESS && quota.used() == 20);
  CHECK(reserves.setLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 3) == CUDA_SUCCESS && quota.used() == 21);
  CHECK(reserves.setLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 1000) == CUDA_SUCCESS && quota.used() == 21);

  // To and fro costs what the most cost, and what the driver refuses costs nothing.
  for (const std::size_t value : {4, 28, 4, 28}) reserves.setLimit(CU_LIMIT_MALLOC_HEAP_SIZE, value);
  CHECK(quota.used() == 21);
  answer = CUDA_ERROR_INVALID_VALUE;
  CHECK(reserves.setLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 128) == CUDA_ERROR_INVALID_VALUE && quota.used() == 21);
  answer = CUDA_SUCCESS;

  current = context(2);
  CHECK(reserves.setLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 9) == CUDA_SUCCESS && quota.used() == 22);
  reserves.ended(context(1));
  reserves.ended(context(1));
  CHECK(quota.used() == 1);
  reserves.ended(context(2));
  CHECK(quota.used() == 0);
}

void testHeap() {
  const worker::Driver driver = driverOfTwoLimits();
  worker::Quota quota;
  const std::string path = worker::test::makeQuotaFile(250);
  CHECK(quota.open(path, 0, 250).empty());
  unlink(path.c_str());
  worker::ReserveAccount reserves(driver, quota, 100);
  current = nullptr;
  CHECK(reserves.takeHeap() && quota.used() == 100);
  current = context(1);
  CHECK(reserves.takeHeap() && reserves.takeHeap() && quota.used() == 200);
  current = context(2);
  CHECK(!reserves.takeHeap() && quota.used() == 200);
  CHECK(reserves.setLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 59) == CUDA_ERROR_OUT_OF_MEMORY && quota.used() == 200);
  reserves.ended(context(1));
  CHECK(quota.used() == 100);
  CHECK(reserves.takeHeap() && quota.used() == 200);
}

}  // namespace

int main() {
  testLimits();
  testHeap();
  return wire::test::checkedResult();
}
