#include "native/worker/accounts/reserve_account.h"

#include <algorithm>
#include <iterator>

namespace worker {

namespace {

/// GPU memory that a limit takes when it is raised by one.
enum class Cost {
  nothing,          ///< or LocalMemory charges it, or the limit is read-only
  itself,           ///< one byte
  pendingLaunches,  ///< pendingLaunchMemory()
  unsupported,      ///< refused, as the driver of an H200 does
  unmeasured        ///< may be large, so the limit cannot be raised
};

struct LimitCost {
  CUlimit limit;
  Cost cost;
};

/// Limits that are not listed are unmeasured. Measured with test/bench/programs/context_costs.cu on
/// an H200, driver 580.159, 2026-11-23.
constexpr LimitCost kLimitCosts[] = {
    {CU_LIMIT_STACK_SIZE, Cost::nothing},       // LocalMemory
    {CU_LIMIT_PRINTF_FIFO_SIZE, Cost::itself},  // its unit is bytes
    {CU_LIMIT_MALLOC_HEAP_SIZE,
     Cost::itself},  // 256 MiB took 248 MiB more than the default of 8 MiB
    {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH,
     Cost::unsupported},  // CUDA_ERROR_UNSUPPORTED_LIMIT, whatever the value
    {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, Cost::pendingLaunches},
    {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, Cost::nothing},  // a hint
    {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, Cost::nothing},  // part of the L2 cache
    {CU_LIMIT_SHMEM_SIZE, Cost::nothing},                // read-only
};

Cost costOf(CUlimit limit) {
  const auto found = std::ranges::find(kLimitCosts, limit, &LimitCost::limit);
  return found != std::end(kLimitCosts) ? found->cost : Cost::unmeasured;
}

constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

/// Bytes per pending launch in the driver's three buffers for device-side launches. Derived from
/// the memory for 14 values between 2,048 and 599,186 (H200, driver 580.159, 2026-11-23).
constexpr std::uint64_t kLaunchBuffers[] = {7168, 2048, 160};
/// The driver lowers larger values to this one without an error. The largest buffer is 4 GiB then.
constexpr std::uint64_t kMostPendingLaunches = (std::uint64_t{4} << 30) / kLaunchBuffers[0];

/// Upper bound in bytes of what `count` pending launches take beyond the default. A buffer may
/// start a page, or use the rest of one.
std::uint64_t pendingLaunchMemory(std::uint64_t count, std::uint64_t initial) {
  if (count <= initial) return 0;
  std::uint64_t pages = 0;
  for (const std::uint64_t each : kLaunchBuffers)
    pages += (each * count + kPage - 1) / kPage - each * initial / kPage;
  return pages * kPage;
}

}  // namespace

bool ReserveAccount::isUnknown(CUlimit limit) { return costOf(limit) == Cost::unmeasured; }

/// The driver refuses limits that it does not know.
CUresult ReserveAccount::setLimit(CUlimit limit, std::size_t value) {
  const Cost cost = costOf(limit);
  std::size_t before = 0;
  if (cost == Cost::nothing || driver_.cuCtxGetLimit(&before, limit) != CUDA_SUCCESS)
    return driver_.cuCtxSetLimit(limit, value);
  if (cost == Cost::unsupported) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (cost == Cost::unmeasured)
    return value > before ? CUDA_ERROR_NOT_SUPPORTED : driver_.cuCtxSetLimit(limit, value);
  const std::lock_guard lock(mutex_);
  Limit& reserved = current().limits.try_emplace(limit, Limit{before, 0}).first->second;
  if (cost == Cost::pendingLaunches) return setPendingLaunches(reserved, value);
  auto& [initial, charged] = reserved;
  const std::uint64_t more = value > initial + charged ? value - initial - charged : 0;
  if (!quota_.charge(more)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = driver_.cuCtxSetLimit(limit, value);
  if (status == CUDA_SUCCESS)
    charged += more;
  else
    quota_.refund(more);
  return status;
}

/// The driver takes the memory when it loads code with device-side launches, or in this call if
/// such code is loaded. It frees it when the limit is lowered, even after launches (H200, driver
/// 580.159, 2026-11-23).
CUresult ReserveAccount::setPendingLaunches(Limit& reserved, std::size_t value) {
  constexpr CUlimit kLimit = CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT;
  auto& [initial, charged] = reserved;
  const std::size_t count = std::min<std::size_t>(value, kMostPendingLaunches);
  const std::uint64_t asked = pendingLaunchMemory(count, initial);
  const std::uint64_t more = asked > charged ? asked - charged : 0;
  if (!quota_.charge(more)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = driver_.cuCtxSetLimit(kLimit, count);
  if (status != CUDA_SUCCESS) {
    quota_.refund(more);
    return status;
  }
  charged += more;
  // Another GPU may have a smaller maximum.
  std::size_t now = 0;
  const bool known = driver_.cuCtxGetLimit(&now, kLimit) == CUDA_SUCCESS;
  const std::uint64_t needed = known ? pendingLaunchMemory(std::min(now, count), initial) : asked;
  quota_.refund(charged - needed);
  charged = needed;
  return status;
}

bool ReserveAccount::takeHeap() {
  const std::lock_guard lock(mutex_);
  bool& taken = current().heap;
  taken = taken || quota_.charge(heap_);
  return taken;
}

/// The entry for null is for libraries that are loaded before the first context.
ReserveAccount::Context& ReserveAccount::current() {
  CUcontext context = nullptr;
  driver_.cuCtxGetCurrent(&context);
  return contexts_[owner_(context)];
}

void ReserveAccount::ended(CUcontext context) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return;
  for (const auto& [limit, reserved] : found->second.limits) quota_.refund(reserved.charged);
  if (found->second.heap) quota_.refund(heap_);
  contexts_.erase(found);
}

}  // namespace worker
