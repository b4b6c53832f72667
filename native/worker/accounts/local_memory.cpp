#include "native/worker/accounts/local_memory.h"

#include "native/worker/session/in_context.h"

namespace worker {

namespace {

/// H200, driver 580.159, 2026-11-23: a stack limit of 1,025 reads 1,040 afterwards, and 2,000 took
/// 126 pages of 2 MiB.
constexpr std::uint64_t kUnit = 16;  ///< bytes per thread
constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

std::uint64_t roundUp(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

bool LocalMemory::reserve(std::uint64_t bytesPerThread) {
  return reserve(contextOf(nullptr), bytesPerThread);
}

bool LocalMemory::reserve(CUcontext context, std::uint64_t bytesPerThread) {
  if (bytesPerThread <= kProvided || context == nullptr) return true;
  const CUcontext owner = owner_(context);
  const std::lock_guard lock(mutex_);
  Reserved& reserved = contexts_[owner];
  if (bytesPerThread <= reserved.perThread) return true;
  // No GPU has so much memory: the driver refuses it.
  if (bytesPerThread > std::uint64_t{1} << 32) return true;
  const std::uint64_t perThread = roundUp(bytesPerThread, kUnit);
  const std::uint64_t more =
      roundUp((perThread - kProvided) * residentThreads(context), kPage) - reserved.charged;
  if (!quota_.charge(more)) return false;
  reserved.perThread = perThread;
  reserved.charged += more;
  return true;
}

bool LocalMemory::reserveFor(CUfunction function, CUstream stream) {
  return reserveFor(function, contextOf(stream));
}

bool LocalMemory::reserveFor(CUfunction function, CUcontext context) {
  const InSomeContext current(driver_, context);
  int bytes = 0;
  const CUresult status =
      driver_.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
  return status != CUDA_SUCCESS || bytes < 0 ||
         reserve(context != nullptr ? context : contextOf(nullptr),
                 static_cast<std::uint64_t>(bytes));
}

/// The driver accepts a kernel as a function for launches, but not for attributes (driver 580).
bool LocalMemory::reserveFor(CUkernel kernel, CUstream stream) {
  return reserveFor(kernel, contextOf(stream));
}

bool LocalMemory::reserveFor(CUkernel kernel, CUcontext context) {
  const InSomeContext current(driver_, context);
  CUfunction function = nullptr;
  return driver_.cuKernelGetFunction(&function, kernel) != CUDA_SUCCESS ||
         reserveFor(function, context);
}

/// Streams 0 to 2 belong to the current context. It is also the answer if the driver does not know
/// the stream.
CUcontext LocalMemory::contextOf(CUstream stream) const {
  CUcontext context = nullptr;
  const bool implicit = reinterpret_cast<std::uintptr_t>(stream) <= 2;
  if (!implicit && driver_.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS) return context;
  return driver_.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

void LocalMemory::ended(CUcontext context) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return;
  quota_.refund(found->second.charged);
  contexts_.erase(found);
}

std::uint64_t LocalMemory::residentThreads(CUcontext context) const {
  CUcontext popped = nullptr;
  CUdevice device = 0;
  int threads = 0;
  int multiprocessors = 0;
  if (driver_.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS) {
    driver_.cuCtxGetDevice(&device);
    driver_.cuCtxPopCurrent_v2(&popped);
  }
  driver_.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                               device);
  driver_.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  return static_cast<std::uint64_t>(threads) * static_cast<std::uint64_t>(multiprocessors);
}

}  // namespace worker
