#include "native/worker/accounts/context_account.h"

#include "wire/test/check.h"

namespace {

CUcontext context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number); }

}  // namespace

int main() {
  worker::Quota quota;
  worker::FiguresFile file;
  worker::Figures& figures = file.figures();
  worker::ContextAccount contexts(quota, figures, 100);
  const auto make = [&](CUdevice device, std::uintptr_t number, CUresult status = CUDA_SUCCESS) {
    CUcontext made = nullptr;
    return contexts.make(device, &made, [&] { return made = context(number), status; });
  };
  CHECK(make(0, 1) == CUDA_SUCCESS && quota.used() == 0 && figures.contexts == 1);
  CHECK(make(1, 2) == CUDA_SUCCESS && quota.used() == 0);  // the first on its GPU
  CHECK(make(0, 3) == CUDA_SUCCESS && quota.used() == 100 && figures.contexts == 3);
  CHECK(make(0, 3) == CUDA_SUCCESS && quota.used() == 100 &&
        figures.contexts == 3);  // there already
  CHECK(make(0, 4, CUDA_ERROR_UNKNOWN) == CUDA_ERROR_UNKNOWN && quota.used() == 100 &&
        figures.contexts == 3);

  // What was allocated in a context goes with it, and nothing else does.
  quota.charge(30);
  quota.remember(0x10, 10, context(3));
  quota.remember(0x20, 20, context(1));
  contexts.ended(context(3));
  contexts.ended(context(3));
  contexts.ended(nullptr);
  CHECK(quota.used() == 20 && figures.contexts == 2);
  contexts.ended(context(1));
  CHECK(quota.used() == 0 && figures.contexts == 1);
  CHECK(make(0, 5) == CUDA_SUCCESS && quota.used() == 0);
  return wire::test::checkedResult();
}
