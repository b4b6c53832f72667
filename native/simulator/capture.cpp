#include "native/simulator/capture.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "native/simulator/graph_mutex.h"

namespace simulator {
namespace {

std::atomic<std::uint64_t> nextCaptureId{1};
std::atomic<std::size_t> active{0};
thread_local CUstreamCaptureMode threadMode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/// Whether the capture forbids unsafe calls to this thread.
bool forbids(const Capture& capture) {
  if (threadMode == CU_STREAM_CAPTURE_MODE_RELAXED || capture.origin.expired()) return false;
  if (capture.thread == std::this_thread::get_id())
    return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  return threadMode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
         capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

}  // namespace

Capture::Capture(CUstreamCaptureMode mode_, std::shared_ptr<Graph> graph_, bool ownsGraph_,
                 std::weak_ptr<Stream> origin_, Context& context_)
    : id(nextCaptureId.fetch_add(1)),
      mode(mode_),
      graph(std::move(graph_)),
      ownsGraph(ownsGraph_),
      origin(std::move(origin_)),
      context(context_) {}

bool anyCapture() { return active.load(std::memory_order_acquire) != 0; }

std::vector<std::shared_ptr<Capture>>& captures() {
  static auto& all = *new std::vector<std::shared_ptr<Capture>>;
  return all;
}

void beginCapture(std::shared_ptr<Capture> capture) {
  captures().push_back(std::move(capture));
  active.store(captures().size(), std::memory_order_release);
}

void endCapture(Capture& capture) {
  capture.ended = true;
  std::erase_if(captures(), [&](const auto& other) { return other.get() == &capture; });
  active.store(captures().size(), std::memory_order_release);
}

CUresult unsafeInCapture() {
  if (!anyCapture()) return CUDA_SUCCESS;
  const std::lock_guard lock(graphMutex());
  CUresult status = CUDA_SUCCESS;
  for (const auto& capture : captures()) {
    if (!forbids(*capture)) continue;
    capture->valid = false;
    status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return status;
}

}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return inDriver([&]() -> CUresult {
    if (mode == nullptr || static_cast<unsigned>(*mode) > CU_STREAM_CAPTURE_MODE_RELAXED)
      return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, threadMode);
    return CUDA_SUCCESS;
  });
}
