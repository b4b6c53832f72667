#include "interposer/memory/staging_chunks.h"

#include <map>

#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/copy.h"

namespace interposer {

namespace {

struct Stagings {
  std::mutex mutex;
  std::map<CUcontext, std::shared_ptr<Staging>> ofContext;
};

Stagings& stagings() {
  static Stagings* const instance = new Stagings;
  return *instance;
}

}  // namespace

std::shared_ptr<Staging> Staging::ofContext(CUresult& status) {
  const std::lock_guard lock(stagings().mutex);
  auto& staging = stagings().ofContext[Thread::current().context()];
  status = CUDA_SUCCESS;
  if (staging != nullptr) return staging;
  auto opened = std::make_shared<Staging>();
  status = opened->open();
  return status == CUDA_SUCCESS ? staging = opened : nullptr;
}

Staging::~Staging() {
  if (memory_ != nullptr) interposer::cuMemFreeHost(memory_);
}

CUresult Staging::open() {
  if (const CUresult status =
          interposer::cuMemHostAlloc(&memory_, kChunks * kChunkBytes, CU_MEMHOSTALLOC_PORTABLE);
      status != CUDA_SUCCESS)
    return status;
  for (std::size_t i = 0; i < kChunks; ++i) {
    Chunk chunk{static_cast<std::byte*>(memory_) + i * kChunkBytes, nullptr};
    if (const CUresult status = remote::cuEventCreate(&chunk.done, CU_EVENT_DISABLE_TIMING);
        status != CUDA_SUCCESS)
      return status;
    free_.push_back(chunk);
  }
  return CUDA_SUCCESS;
}

bool Staging::tryTake(Chunk& chunk, CUresult& status) {
  std::unique_lock lock(mutex_);
  if (free_.empty() && inFlight_.empty()) return false;
  const bool busy = free_.empty();
  auto& from = busy ? inFlight_ : free_;
  chunk = from.front();
  from.pop_front();
  lock.unlock();
  status = busy ? remote::cuEventSynchronize(chunk.done) : CUDA_SUCCESS;
  if (status != CUDA_SUCCESS) release(chunk);
  return true;
}

CUresult Staging::take(Chunk& chunk) {
  CUresult status = CUDA_SUCCESS;
  while (!tryTake(chunk, status)) {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return !free_.empty() || !inFlight_.empty(); });
  }
  return status;
}

CUresult Staging::submit(const Chunk& chunk, CUstream stream) {
  const CUresult status = remote::cuEventRecord(chunk.done, stream);
  if (status != CUDA_SUCCESS) return release(chunk), status;
  const std::lock_guard lock(mutex_);
  inFlight_.push_back(chunk);
  released_.notify_one();
  return CUDA_SUCCESS;
}

void Staging::release(const Chunk& chunk) {
  const std::lock_guard lock(mutex_);
  free_.push_front(chunk);
  released_.notify_one();
}

std::size_t nextOf(std::size_t left, std::size_t atOnce, std::size_t bytesOfEach) {
  if (left <= atOnce) return left;
  return (left - atOnce) * bytesOfEach > wire::kSmallCopyBytes ? atOnce : left / 2;
}

std::shared_ptr<void> closeStaging(CUcontext context) {
  const std::lock_guard lock(stagings().mutex);
  const auto found = stagings().ofContext.extract(context);
  return found ? found.mapped() : nullptr;
}

}  // namespace interposer
