#include "native/worker/accounts/stream_account.h"

#include <doctest/doctest.h>

#include <set>

namespace {

std::set<CUstream> busy, destroyed;

worker::Driver playedDriver() {
  worker::Driver driver{};
  driver.cuCtxPushCurrent_v2 = [](CUcontext) { return CUDA_SUCCESS; };
  driver.cuCtxPopCurrent_v2 = [](CUcontext*) { return CUDA_SUCCESS; };
  driver.cuStreamQuery = [](CUstream stream) {
    return busy.contains(stream) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  };
  driver.cuStreamDestroy_v2 = [](CUstream stream) {
    return destroyed.insert(stream), CUDA_SUCCESS;
  };
  return driver;
}

const worker::Driver driver = playedDriver();

CUcontext context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number); }
CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

TEST_CASE("streams are charged, and memory that the driver reuses is not charged twice") {
  worker::Quota quota;
  worker::StreamAccount streams(driver, quota, 100);
  const auto make = [&](std::uintptr_t in, std::uintptr_t number, CUresult status = CUDA_SUCCESS) {
    CUstream made = nullptr;
    return streams.make(context(in), &made, [&] { return made = stream(number), status; });
  };
  CHECK(make(1, 10) == CUDA_SUCCESS);
  CHECK(make(1, 11) == CUDA_SUCCESS);
  CHECK(quota.used() == 200);
  CHECK(make(1, 12, CUDA_ERROR_UNKNOWN) == CUDA_ERROR_UNKNOWN);
  CHECK(quota.used() == 200);

  // The driver keeps the memory of a destroyed stream for the next one.
  CHECK(streams.destroy(stream(10), false) == CUDA_SUCCESS);
  CHECK(streams.destroy(stream(10), false) == CUDA_SUCCESS);
  CHECK(quota.used() == 200);
  CHECK(make(1, 10) == CUDA_SUCCESS);
  CHECK(quota.used() == 200);
  CHECK(make(1, 13) == CUDA_SUCCESS);
  CHECK(quota.used() == 300);

  // Another context has no memory to reuse.
  CHECK(make(2, 20) == CUDA_SUCCESS);
  CHECK(quota.used() == 400);
  streams.ended(context(1));
  streams.ended(context(1));
  CHECK(quota.used() == 100);
  streams.destroy(stream(11), false);
  CHECK(make(2, 21) == CUDA_SUCCESS);
  CHECK(quota.used() == 200);
  streams.ended(context(2));
  CHECK(quota.used() == 0);
}

TEST_CASE("a stream stays charged, and alive, until its work has ended") {
  worker::Quota quota;
  worker::StreamAccount streams(driver, quota, 100);
  const auto make = [&](std::uintptr_t number) {
    CUstream made = nullptr;
    return streams.make(context(1), &made, [&] { return made = stream(number), CUDA_SUCCESS; });
  };
  destroyed.clear();
  busy = {stream(10)};
  make(10);
  CHECK(streams.destroy(stream(10), false) == CUDA_SUCCESS);
  CHECK(destroyed.empty());
  make(11);
  CHECK(quota.used() == 200);
  CHECK(streams.destroy(stream(11), false) == CUDA_SUCCESS);
  make(12);
  CHECK(quota.used() == 200);
  busy.clear();
  make(13);
  CHECK(quota.used() == 200);
  CHECK(destroyed == std::set{stream(10), stream(11)});

  // The driver answers nothing about a stream that captures.
  busy = {stream(13)};
  CHECK(streams.destroy(stream(13), true) == CUDA_SUCCESS);
  CHECK(destroyed.contains(stream(13)));
  make(14);
  CHECK(quota.used() == 300);
  streams.ended(context(1));
  CHECK(quota.used() == 0);
  busy.clear();
}

TEST_CASE("streams without a charge cost nothing") {
  worker::Quota quota;
  worker::StreamAccount streams(driver, quota, 0);
  CUstream made = nullptr;
  CHECK(streams.make(context(1), &made, [&] { return made = stream(1), CUDA_SUCCESS; }) ==
        CUDA_SUCCESS);
  CHECK(quota.used() == 0);
  streams.destroy(made, false);
  streams.ended(context(1));
  CHECK(quota.used() == 0);
}

}  // namespace
