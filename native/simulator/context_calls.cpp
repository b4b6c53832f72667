// Calls about contexts other than primary ones, the stack of current contexts, and settings.
#include "native/simulator/context.h"

#include <bit>

#include "native/simulator/attributes.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/handles.h"
#include "native/simulator/stream_capture.h"

using namespace simulator;

namespace {

constexpr unsigned kContextFlags = CU_CTX_FLAGS_MASK;
constexpr unsigned kApiVersion = 3020;

CUcontext handle(const Context* context) { return handleOf<CUcontext>(context); }

bool areContextFlags(unsigned flags) {
  return (flags & ~kContextFlags) == 0 && std::popcount(flags & CU_CTX_SCHED_MASK) <= 1;
}

CUresult create(CUcontext* pctx, unsigned flags, CUdevice dev) {
  return inDriver([&]() -> CUresult {
    if (pctx == nullptr || !areContextFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
    Device* device = findDevice(dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    auto* context = new Context(*device, false);
    context->flags = flags;
    context->apiVersion = kApiVersion;
    const CUresult status = activate(*context);
    if (status != CUDA_SUCCESS) return status;
    contextStack().push_back(context);
    *pctx = handle(context);
    return CUDA_SUCCESS;
  });
}

/// Runs body(Context&) on the context that `ctx` names, or on the current one when it is null.
template <class Body>
CUresult onContext(CUcontext ctx, Body&& body) {
  if (ctx == nullptr) return inContext(body);
  return inDriver([&]() -> CUresult {
    Context* context = nullptr;
    const CUresult status = findContext(ctx, context);
    return status == CUDA_SUCCESS ? body(*context) : status;
  });
}

}  // namespace

DRIVER_CALL cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return create(pctx, flags, dev);
}

DRIVER_CALL cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams,
                           unsigned int flags, CUdevice dev) {
  if (paramsArray != nullptr || numParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(pctx, flags, dev);
}

DRIVER_CALL cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags,
                           CUdevice dev) {
  if (ctxCreateParams != nullptr) {
    if (ctxCreateParams->numExecAffinityParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (ctxCreateParams->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  }
  return create(pctx, flags, dev);
}

DRIVER_CALL cuCtxDestroy_v2(CUcontext ctx) {
  return inDriver([&]() -> CUresult {
    if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    const CUresult status = findContext(ctx, context);
    if (status != CUDA_SUCCESS) return status;
    if (context->primary)
      return fault() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    auto& stack = contextStack();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    destroy(*context);
    return fault();
  });
}

DRIVER_CALL cuCtxPushCurrent_v2(CUcontext ctx) {
  return inDriver([&]() -> CUresult {
    if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    const CUresult status = findContext(ctx, context);
    if (status != CUDA_SUCCESS) return status;
    contextStack().push_back(context);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxPopCurrent_v2(CUcontext* pctx) {
  return inDriver([&]() -> CUresult {
    auto& stack = contextStack();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx != nullptr) *pctx = handle(stack.back());
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxSetCurrent(CUcontext ctx) {
  return inDriver([&]() -> CUresult {
    auto& stack = contextStack();
    if (ctx == nullptr) {
      if (!stack.empty()) stack.pop_back();
      return CUDA_SUCCESS;
    }
    Context* context = nullptr;
    const CUresult status = findContext(ctx, context);
    // The CUDA runtime makes a primary context current before it is retained.
    if (status != CUDA_SUCCESS && (context == nullptr || !context->primary)) return status;
    if (stack.empty()) stack.push_back(context);
    stack.back() = context;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxGetCurrent(CUcontext* pctx) {
  return inDriver([&]() -> CUresult {
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& stack = contextStack();
    *pctx = stack.empty() ? nullptr : handle(stack.back());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxGetDevice(CUdevice* device) {
  return inDriver([&]() -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& stack = contextStack();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *device = stack.back()->device.ordinal;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  if (ctx == nullptr) return cuCtxGetDevice(device);
  return onContext(ctx, [&](Context& context) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context.device.ordinal;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxGetFlags(unsigned int* flags) {
  return inContextDespiteFault([&](Context& context) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Reported of primary contexts only (H200).
    *flags = context.flags.load() | (context.primary ? unsigned{CU_CTX_MAP_HOST} : 0u);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxSetFlags(unsigned int flags) {
  return inContext([&](Context& context) -> CUresult {
    if (!areContextFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
    context.flags = flags & ~static_cast<unsigned>(CU_CTX_COREDUMP_ENABLE);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  return onContext(ctx, [&](Context& context) -> CUresult {
    if (ctxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *ctxId = context.id.load();
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  return onContext(ctx, [&](Context& context) -> CUresult {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = context.apiVersion;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxSynchronize(void) {
  return inContext([](Context& context) -> CUresult {
    const CUresult status = waitInCapture(context);
    if (status != CUDA_SUCCESS) return status;
    synchronize(context);
    return fault();
  });
}

DRIVER_CALL cuCtxSynchronize_v2(CUcontext ctx) {
  return onContext(ctx, [](Context& context) -> CUresult {
    const CUresult status = waitInCapture(context);
    if (status != CUDA_SUCCESS) return status;
    synchronize(context);
    return fault();
  });
}

DRIVER_CALL cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  return inContext([&](Context& context) -> CUresult {
    if (pconfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(context.mutex);
    *pconfig = context.cacheConfig;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxSetCacheConfig(CUfunc_cache config) {
  return inContext([&](Context& context) -> CUresult {
    if (static_cast<unsigned>(config) > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(context.mutex);
    context.cacheConfig = config;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
  return inContext([&](Context&) -> CUresult {
    if (pConfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return inContext([&](Context&) -> CUresult {
    return static_cast<unsigned>(config) > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return inContext([&](Context&) -> CUresult {
    if (leastPriority != nullptr) *leastPriority = kLeastPriority;
    if (greatestPriority != nullptr) *greatestPriority = kGreatestPriority;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxResetPersistingL2Cache(void) {
  return inContext([](Context&) -> CUresult { return CUDA_SUCCESS; });
}

DRIVER_CALL cuCtxGetExecAffinity(CUexecAffinityParam*, CUexecAffinityType) {
  return inContext([](Context&) -> CUresult { return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY; });
}
