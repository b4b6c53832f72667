// The limits of a context: cuCtxGetLimit and cuCtxSetLimit. Values are rounded as by the real
// driver.
#include <algorithm>

#include "native/simulator/attributes.h"
#include "native/simulator/capture.h"
#include "native/simulator/context.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/round_up.h"

namespace simulator {
namespace {

constexpr std::size_t kStackMost = 523264;     ///< per thread
constexpr std::size_t kPrintfUnit = 64 << 10;  ///< of the printf buffer, for each multiprocessor
constexpr std::size_t kFewestLaunches = 32;    ///< pending device-side launches
constexpr std::size_t kMostLaunches = 599186;  ///< H200, driver 580.159, 2026-11-23
constexpr std::size_t kHeapUnit = std::size_t{4} << 20;  ///< of the heap of malloc

/// The limits for synchronisation depth of device-side launches and for graphics sharing do not
/// exist on this compute capability.
bool exists(CUlimit limit) {
  return limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH && limit != CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED;
}
bool settable(CUlimit limit) {
  return exists(limit) && limit != CU_LIMIT_SHMEM_SIZE && limit != CU_LIMIT_CIG_ENABLED;
}

CUresult rounded(CUlimit limit, std::size_t& value) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      if (value > kStackMost) return CUDA_ERROR_INVALID_VALUE;
      value = roundUp(value, 16);
      break;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      value = std::max(roundUp(value, kPrintfUnit), 8 * kPrintfUnit);
      break;
    case CU_LIMIT_MALLOC_HEAP_SIZE: value = std::max(roundUp(value, kHeapUnit), kHeapUnit); break;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      value = std::clamp(value, kFewestLaunches, kMostLaunches);
      break;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      if (value > 128) return CUDA_ERROR_INVALID_VALUE;
      break;
    default: break;
  }
  return CUDA_SUCCESS;
}

}  // namespace

void setDefaultLimits(Context& context) {
  context.limits.fill(0);
  context.limits[CU_LIMIT_STACK_SIZE] = 1024;
  context.limits[CU_LIMIT_PRINTF_FIFO_SIZE] = kMultiprocessors * kPrintfUnit;
  context.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 2 * kHeapUnit;
  context.limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context.limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  context.limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 11796480;
  context.limits[CU_LIMIT_SHMEM_SIZE] = kSharedPerBlockOptin;
}

std::optional<std::size_t> limitOf(Context& context, int limit) {
  if (limit < 0 || limit >= kLimits || !exists(static_cast<CUlimit>(limit))) return std::nullopt;
  const std::lock_guard lock(context.mutex);
  return context.limits[static_cast<std::size_t>(limit)];
}

}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  return inContext([&](Context& context) -> CUresult {
    if (pvalue == nullptr || static_cast<unsigned>(limit) >= kLimits)
      return CUDA_ERROR_INVALID_VALUE;
    const auto value = limitOf(context, limit);
    if (!value) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *pvalue = *value;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxSetLimit(CUlimit limit, size_t value) {
  return outsideCapture([&](Context& context) -> CUresult {
    if (static_cast<unsigned>(limit) >= kLimits) return CUDA_ERROR_INVALID_VALUE;
    if (!settable(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    const CUresult status = rounded(limit, value);
    if (status != CUDA_SUCCESS) return status;
    const std::lock_guard lock(context.mutex);
    context.limits[limit] = value;
    return CUDA_SUCCESS;
  });
}
