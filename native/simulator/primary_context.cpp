// The primary context of each device: one handle per process, alive while it is retained.
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/handles.h"

using namespace simulator;

namespace {

/// Serialises retain and release, because both activate or end contexts.
std::mutex changing;

template <class Body>
CUresult onPrimary(CUdevice dev, Body&& body) {
  return inDriver([&]() -> CUresult {
    Device* device = findDevice(dev);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*device->primary);
  });
}

}  // namespace

DRIVER_CALL cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return onPrimary(dev, [&](Context& context) -> CUresult {
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(changing);
    if (!context.alive.load()) {
      const CUresult status = activate(context);
      if (status != CUDA_SUCCESS) return status;
    }
    ++context.retained;
    *pctx = handleOf<CUcontext>(&context);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return onPrimary(dev, [](Context& context) -> CUresult {
    const std::lock_guard lock(changing);
    if (context.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--context.retained == 0 && context.alive.load()) destroy(context);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return onPrimary(dev, [](Context& context) -> CUresult {
    const std::lock_guard lock(changing);
    if (context.alive.load())
      destroy(context);  // its holders keep a dead context until it is retained again
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  return onPrimary(dev, [&](Context& context) -> CUresult {
    if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
    context.flags = flags;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  return onPrimary(dev, [&](Context& context) -> CUresult {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags.load();
    *active = context.alive.load() ? 1 : 0;
    return CUDA_SUCCESS;
  });
}
