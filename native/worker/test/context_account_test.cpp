// What contexts cost beyond the first of each GPU.
#include "native/worker/accounts/context_account.h"

#include <doctest/doctest.h>

namespace {

CUcontext context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number); }

}  // namespace

TEST_CASE("contexts beyond the first of a GPU are charged until they end") {
  worker::Quota quota;
  worker::FiguresFile file;
  worker::Figures& figures = file.figures();
  worker::ContextAccount contexts(quota, figures, 100);
  const auto make = [&](CUdevice device, std::uintptr_t number, CUresult status = CUDA_SUCCESS) {
    CUcontext made = nullptr;
    return contexts.make(device, &made, [&] { return made = context(number), status; });
  };
  CHECK(make(0, 1) == CUDA_SUCCESS);
  CHECK(quota.used() == 0);
  CHECK(figures.contexts == 1);
  CHECK(make(1, 2) == CUDA_SUCCESS);
  CHECK(quota.used() == 0);  // the first of its GPU
  CHECK(make(0, 3) == CUDA_SUCCESS);
  CHECK(quota.used() == 100);
  CHECK(figures.contexts == 3);
  CHECK(make(0, 3) == CUDA_SUCCESS);
  CHECK(quota.used() == 100);
  CHECK(figures.contexts == 3);  // it exists already
  CHECK(make(0, 4, CUDA_ERROR_UNKNOWN) == CUDA_ERROR_UNKNOWN);
  CHECK(quota.used() == 100);
  CHECK(figures.contexts == 3);

  // Memory of a context is refunded with it, and no other memory is.
  quota.charge(30);
  quota.remember(0x10, 10, context(3));
  quota.remember(0x20, 20, context(1));
  contexts.ended(context(3));
  contexts.ended(context(3));
  contexts.ended(nullptr);
  CHECK(quota.used() == 20);
  CHECK(figures.contexts == 2);
  contexts.ended(context(1));
  CHECK(quota.used() == 0);
  CHECK(figures.contexts == 1);
  CHECK(make(0, 5) == CUDA_SUCCESS);
  CHECK(quota.used() == 0);
}
