#include "native/worker/accounts/stream_account.h"

#include <doctest/doctest.h>

namespace {

CUcontext context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number); }
CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

TEST_CASE("streams are charged, and memory that the driver reuses is not charged twice") {
  worker::Quota quota;
  worker::StreamAccount streams(quota, 100);
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
  streams.destroyed(stream(10));
  streams.destroyed(stream(10));
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
  streams.destroyed(stream(11));
  CHECK(make(2, 21) == CUDA_SUCCESS);
  CHECK(quota.used() == 200);
  streams.ended(context(2));
  CHECK(quota.used() == 0);
}

TEST_CASE("streams without a charge cost nothing") {
  worker::Quota quota;
  worker::StreamAccount streams(quota, 0);
  CUstream made = nullptr;
  CHECK(streams.make(context(1), &made, [&] { return made = stream(1), CUDA_SUCCESS; }) ==
        CUDA_SUCCESS);
  CHECK(quota.used() == 0);
  streams.destroyed(made);
  streams.ended(context(1));
  CHECK(quota.used() == 0);
}

}  // namespace
