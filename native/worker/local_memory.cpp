#include "native/worker/local_memory.h"

namespace worker {

bool LocalMemory::reserve(std::uint64_t bytesPerThread) {
  CUcontext context = nullptr;
  if (bytesPerThread <= kProvided || driver_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return true;
  const std::lock_guard lock(mutex_);
  Reserved& reserved = contexts_[context];
  if (bytesPerThread <= reserved.perThread) return true;
  // No GPU has so much: the driver will say what it says to that.
  if (bytesPerThread > std::uint64_t{1} << 32) return true;
  const std::uint64_t more = (bytesPerThread - reserved.perThread) * residentThreads();
  if (!quota_.charge(more)) return false;
  reserved.perThread = bytesPerThread;
  reserved.charged += more;
  return true;
}

bool LocalMemory::reserveFor(CUfunction function) {
  int bytes = 0;
  const CUresult status = driver_.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
  return status != CUDA_SUCCESS || bytes < 0 || reserve(static_cast<std::uint64_t>(bytes));
}

/// The driver launches a kernel like a function, but does not tell its attributes like those of one (driver 580).
bool LocalMemory::reserveFor(CUkernel kernel) {
  CUfunction function = nullptr;
  return driver_.cuKernelGetFunction(&function, kernel) != CUDA_SUCCESS || reserveFor(function);
}

void LocalMemory::ended(CUcontext context) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return;
  quota_.refund(found->second.charged);
  contexts_.erase(found);
}

std::uint64_t LocalMemory::residentThreads() const {
  CUdevice device = 0;
  int threads = 0;
  int multiprocessors = 0;
  driver_.cuCtxGetDevice(&device);
  driver_.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
  driver_.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  return static_cast<std::uint64_t>(threads) * static_cast<std::uint64_t>(multiprocessors);
}

}  // namespace worker
