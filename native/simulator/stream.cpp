// The stream of a handle. stream_queue.cpp orders and executes operations.
#include "native/simulator/stream.h"

#include <unordered_map>

#include "native/simulator/context.h"
#include "native/simulator/handles.h"

namespace simulator {
namespace {

/// The per-thread default streams of a thread, by the context's id since its last activation.
struct PerThreadStreams {
  ~PerThreadStreams() {
    for (const auto& [id, stream] : streams) {
      if (!stream->idle()) stream->retire();
    }
  }
  std::unordered_map<std::uint64_t, std::shared_ptr<Stream>> streams;
};

std::shared_ptr<Stream> perThreadStream(Context& context) {
  thread_local PerThreadStreams mine;
  auto& stream = mine.streams[context.id.load()];
  if (stream == nullptr) {
    stream = std::make_shared<Stream>(context, 0u, 0);
    const std::lock_guard lock(context.mutex);
    context.streams.push_back(stream);
  }
  return stream;
}

}  // namespace

CUresult findStream(Context* current, CUstream handle, std::shared_ptr<Stream>& stream) {
  if (!isDefault(handle)) {
    stream = Handles<Stream>::all().find(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return stream->context.alive.load() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (handle == CU_STREAM_PER_THREAD) {
    stream = perThreadStream(*current);
  } else {
    const std::lock_guard lock(current->mutex);
    stream = current->legacy;
  }
  return stream == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

}  // namespace simulator
