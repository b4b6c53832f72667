#include "native/worker/session/managed_memory.h"

#include <vector>

#include "native/worker/session/in_context.h"

namespace worker {

void ManagedMemory::add(Pointer allocation) {
  const std::lock_guard lock(mutex_);
  allocations_[allocation->address] = std::move(allocation);
}

void ManagedMemory::remove(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  allocations_.erase(address);
}

ManagedMemory::Pointer ManagedMemory::find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(address);
  return found == allocations_.end() ? nullptr : found->second;
}

CUstream ManagedMemory::openStream(const Driver& driver, StreamAccount& account,
                                   CUcontext context) {
  const std::lock_guard lock(streamsMutex_);
  CUstream& stream = streams_[context];
  if (stream == nullptr)
    account.make(context, &stream,
                 [&] { return driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); });
  return stream;
}

/// Host functions of the context's work may still need pages, so that work ends first.
void ManagedMemory::contextEnds(const Driver& driver, CUcontext context) {
  std::vector<Pointer> ending;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, memory] : allocations_) {
      if (memory->context == context) ending.push_back(memory);
    }
  }
  if (!ending.empty()) {
    const InContext current(driver, context);
    if (current.status() == CUDA_SUCCESS) driver.cuCtxSynchronize();
  }
  for (const Pointer& memory : ending) {
    const std::lock_guard lock(memory->mutex);
    memory->context = nullptr;
  }
  const std::lock_guard lock(streamsMutex_);
  streams_.erase(context);
}

}  // namespace worker
