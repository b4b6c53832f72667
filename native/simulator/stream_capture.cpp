#include "native/simulator/stream_capture.h"

#include <algorithm>
#include <utility>

#include "native/simulator/context.h"
#include "native/simulator/event.h"

namespace simulator {
namespace {

bool isLegacy(const Stream& stream) { return stream.context.legacy.get() == &stream; }

/// Runs visit(Capture&) for each capture with a blocking stream of the context.
template <class Visit>
void eachBlockingCapture(const Context& context, Visit&& visit) {
  for (const auto& capture : captures()) {
    const bool blocking =
        std::any_of(capture->streams.begin(), capture->streams.end(), [&](const auto& weak) {
          const auto stream = weak.lock();
          return stream != nullptr && stream->blocking() && &stream->context == &context;
        });
    if (blocking) visit(*capture);
  }
}

/// The legacy stream would wait for blocking streams that capture, so its use invalidates them.
CUresult implicit(Stream& stream) {
  CUresult status = CUDA_SUCCESS;
  if (!isLegacy(stream)) return status;
  eachBlockingCapture(stream.context, [&](Capture& capture) {
    capture.valid = false;
    status = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  });
  return status;
}

/// A kernel that may begin before the kernels that it follows have ended depends on an earlier
/// point of them.
void dependProgrammatically(StreamCapture& position, const Work& work) {
  const auto* kernel = std::get_if<KernelWork>(&work);
  if (kernel == nullptr) return;
  const auto found = kernel->attributes.find(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  if (found == kernel->attributes.end() ||
      found->second.programmaticStreamSerializationAllowed == 0)
    return;
  for (Edge& edge : position.dependencies) {
    if (!std::holds_alternative<KernelWork>(edge.node->work) || !isDefault(edge.data)) continue;
    edge.data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  }
}

CUresult append(StreamCapture& position, Work work) {
  dependProgrammatically(position, work);
  GraphNode* node = nullptr;
  const CUresult status =
      addNode(*position.capture->graph, position.dependencies, std::move(work), node);
  if (status != CUDA_SUCCESS) return status;
  node->mustBeJoined = true;
  position.dependencies = {{node, CUgraphEdgeData{}}};
  return CUDA_SUCCESS;
}

CUresult join(const StreamCapture& recorded, Stream& stream) {
  if (!recorded.capture->valid) return CUDA_ERROR_INVALID_VALUE;
  if (isLegacy(stream)) {
    recorded.capture->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  stream.capture = std::make_shared<StreamCapture>(recorded);
  recorded.capture->streams.push_back(stream.weak_from_this());
  return CUDA_SUCCESS;
}

/// A capturing stream waits for an event: one of the same capture, or the capture is lost.
CUresult depend(StreamCapture& position, const StreamCapture* recorded) {
  Capture& capture = *position.capture;
  if (recorded == nullptr || recorded->capture->ended) {
    capture.valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (recorded->capture != position.capture) {
    capture.valid = recorded->capture->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  addDependencies(position, recorded->dependencies);
  return CUDA_SUCCESS;
}

}  // namespace

void addDependencies(StreamCapture& position, const std::vector<Edge>& more) {
  for (const Edge& edge : more) {
    const bool known =
        std::any_of(position.dependencies.begin(), position.dependencies.end(),
                    [&](const Edge& existing) { return existing.node == edge.node; });
    if (!known) position.dependencies.push_back(edge);
  }
}

std::optional<CUresult> captured(Stream& stream, const std::function<CUresult(Work&)>& make) {
  if (!anyCapture()) return std::nullopt;
  const std::lock_guard lock(graphMutex());
  if (stream.capture == nullptr) {
    const CUresult status = implicit(stream);
    return status == CUDA_SUCCESS ? std::nullopt : std::optional(status);
  }
  if (!stream.capture->capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Work work = EmptyWork{};
  const CUresult status = make(work);
  return status == CUDA_SUCCESS ? append(*stream.capture, std::move(work)) : status;
}

CUresult refusedInCapture(Stream& stream) {
  if (!anyCapture()) return CUDA_SUCCESS;
  const std::lock_guard lock(graphMutex());
  if (stream.capture == nullptr) return implicit(stream);
  Capture& capture = *stream.capture->capture;
  return std::exchange(capture.valid, false) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                             : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult waitInCapture(Stream& stream) {
  const CUresult status = refusedInCapture(stream);
  return status == CUDA_SUCCESS ? unsafeInCapture() : status;
}

CUresult waitInCapture(Context& context) {
  if (!anyCapture()) return CUDA_SUCCESS;
  CUresult status = CUDA_SUCCESS;
  {
    const std::lock_guard lock(graphMutex());
    for (const auto& capture : captures()) {
      for (const auto& weak : capture->streams) {
        const auto stream = weak.lock();
        if (stream == nullptr || &stream->context != &context) continue;
        capture->valid = false;
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
      }
    }
  }
  return status == CUDA_SUCCESS ? unsafeInCapture() : status;
}

CUresult waitInCapture(Event& event) {
  if (const auto recorded = event.captured()) {
    const std::lock_guard lock(graphMutex());
    recorded->capture->valid = false;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  return unsafeInCapture();
}

std::optional<CUresult> captureRecord(const std::shared_ptr<Event>& event, Stream& stream,
                                      unsigned flags) {
  if (flags == CU_EVENT_RECORD_EXTERNAL) {
    return captured(stream, [&](Work& work) {
      work = RecordWork{event};
      return CUDA_SUCCESS;
    });
  }
  if (!anyCapture()) return std::nullopt;
  const std::lock_guard lock(graphMutex());
  if (stream.capture == nullptr) {
    const CUresult status = implicit(stream);
    return status == CUDA_SUCCESS ? std::nullopt : std::optional(status);
  }
  if (!stream.capture->capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->recordCaptured(std::make_shared<const StreamCapture>(*stream.capture));
  return CUDA_SUCCESS;
}

std::optional<CUresult> captureWait(const std::shared_ptr<Event>& event, Stream& stream,
                                    unsigned flags) {
  if (flags == CU_EVENT_WAIT_EXTERNAL) {
    return captured(stream, [&](Work& work) {
      work = WaitWork{event};
      return CUDA_SUCCESS;
    });
  }
  const auto recorded = event->captured();
  if (recorded == nullptr && !anyCapture()) return std::nullopt;
  const std::lock_guard lock(graphMutex());
  if (stream.capture != nullptr) {
    return stream.capture->capture->valid ? depend(*stream.capture, recorded.get())
                                          : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (const CUresult status = implicit(stream); status != CUDA_SUCCESS) return status;
  if (recorded == nullptr) return std::nullopt;
  return recorded->capture->ended ? CUDA_ERROR_CAPTURED_EVENT : join(*recorded, stream);
}

void finish(Capture& capture) {
  for (const auto& weak : capture.streams) {
    if (const auto stream = weak.lock()) stream->capture = nullptr;
  }
  for (const auto& node : capture.graph->nodes) node->mustBeJoined = false;
  capture.graph->capturing = false;
  capture.graph = nullptr;
  endCapture(capture);
}

void discard(Capture& capture) {
  if (capture.ownsGraph) unlist(*capture.graph);
  finish(capture);
}

void leaveCapture(Stream& stream) {
  if (!anyCapture()) return;
  const std::lock_guard lock(graphMutex());
  if (stream.capture == nullptr) return;
  const auto capture = stream.capture->capture;
  if (capture->origin.lock().get() == &stream) return discard(*capture);
  stream.capture = nullptr;
}

void leaveCaptures(Context& context) {
  if (!anyCapture()) return;
  const std::lock_guard lock(graphMutex());
  const auto all = captures();
  for (const auto& capture : all) {
    if (&capture->context == &context) discard(*capture);
  }
}

CUresult positionOf(Stream& stream, std::shared_ptr<StreamCapture>& position) {
  position = stream.capture;
  CUresult status = CUDA_SUCCESS;
  if (isLegacy(stream)) {
    eachBlockingCapture(stream.context,
                        [&](Capture&) { status = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; });
  }
  return status;
}

}  // namespace simulator
