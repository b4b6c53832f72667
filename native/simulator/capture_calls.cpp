// Calls that begin and end captures, and ask about them.
#include <algorithm>
#include <utility>

#include "native/simulator/stream_capture.h"

using namespace simulator;

namespace {

bool isMode(CUstreamCaptureMode mode) {
  return static_cast<unsigned>(mode) <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

/// The legacy stream cannot capture, and a stream captures once.
CUresult mayBegin(Context& context, Stream& stream, CUstreamCaptureMode mode) {
  if (!isMode(mode)) return CUDA_ERROR_INVALID_VALUE;
  if (context.legacy.get() == &stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return stream.capture == nullptr ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

void begin(Stream& stream, const std::shared_ptr<Graph>& graph, bool ownsGraph,
           std::vector<Edge> dependencies, CUstreamCaptureMode mode) {
  auto capture =
      std::make_shared<Capture>(mode, graph, ownsGraph, stream.weak_from_this(), stream.context);
  capture->streams.push_back(stream.weak_from_this());
  graph->capturing = true;
  stream.capture =
      std::make_shared<StreamCapture>(StreamCapture{capture, std::move(dependencies), {}, {}});
  beginCapture(std::move(capture));
}

CUresult beginNew(CUstream hStream, CUstreamCaptureMode mode) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    const std::lock_guard lock(graphMutex());
    const CUresult status = mayBegin(stream.context, stream, mode);
    if (status != CUDA_SUCCESS) return status;
    const auto graph = std::make_shared<Graph>();
    list(graph);
    begin(stream, graph, true, {}, mode);
    return CUDA_SUCCESS;
  });
}

bool isAmong(const std::vector<Edge>& edges, const GraphNode* node) {
  return std::any_of(edges.begin(), edges.end(),
                     [&](const Edge& edge) { return edge.node == node; });
}

/// Whether the origin is right behind all captured work that nothing else is behind, except work
/// that a stream was set to leave behind (update()). Recorded from an H200: capture_unjoined.
bool joined(const Capture& capture, const StreamCapture& origin) {
  return std::all_of(capture.graph->nodes.begin(), capture.graph->nodes.end(),
                     [&](const std::shared_ptr<GraphNode>& node) {
                       return !node->mustBeJoined || !node->dependents.empty() ||
                              isAmong(origin.dependencies, node.get());
                     });
}

CUresult end(Stream& stream, CUgraph* phGraph) {
  const auto position = stream.capture;
  if (position == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  Capture& capture = *position->capture;
  if (capture.origin.lock().get() != &stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture.thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (phGraph != nullptr) *phGraph = nullptr;
  CUresult status = CUDA_SUCCESS;
  if (!capture.valid) {
    status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!joined(capture, *position)) {
    status = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  if (status != CUDA_SUCCESS) {
    discard(capture);
    return status;
  }
  if (phGraph == nullptr) {  // enough for a capture into a graph that exists
    discard(capture);
    return CUDA_SUCCESS;
  }
  *phGraph = handleOf<CUgraph>(capture.graph.get());
  finish(capture);
  return CUDA_SUCCESS;
}

/// Destinations of cuStreamGetCaptureInfo's results. All except the status may be null.
struct Answer {
  CUstreamCaptureStatus* status;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** dependencies = nullptr;
  const CUgraphEdgeData** edgeData = nullptr;
  size_t* count = nullptr;
};

/// The dependencies as arrays that live until the stream's next call.
CUresult tell(StreamCapture& position, const Answer& answer) {
  position.nodes.clear();
  position.data.clear();
  bool plain = true;
  for (const Edge& edge : position.dependencies) {
    position.nodes.push_back(handleOf<CUgraphNode>(edge.node));
    position.data.push_back(edge.data);
    plain = plain && isDefault(edge.data);
  }
  if (answer.dependencies != nullptr && answer.edgeData == nullptr && !plain)
    return CUDA_ERROR_LOSSY_QUERY;
  if (answer.id != nullptr) *answer.id = position.capture->id;
  if (answer.graph != nullptr) *answer.graph = handleOf<CUgraph>(position.capture->graph.get());
  if (answer.dependencies != nullptr) *answer.dependencies = position.nodes.data();
  if (answer.edgeData != nullptr) *answer.edgeData = position.data.data();
  if (answer.count != nullptr) *answer.count = position.nodes.size();
  return CUDA_SUCCESS;
}

CUresult info(CUstream hStream, const Answer& answer) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    if (answer.status == nullptr || (answer.edgeData != nullptr && answer.dependencies == nullptr))
      return CUDA_ERROR_INVALID_VALUE;
    *answer.status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!anyCapture()) return CUDA_SUCCESS;
    const std::lock_guard lock(graphMutex());
    std::shared_ptr<StreamCapture> position;
    const CUresult status = positionOf(stream, position);
    if (status != CUDA_SUCCESS || position == nullptr) return status;
    const bool valid = position->capture->valid;
    *answer.status = valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return valid ? tell(*position, answer) : CUDA_SUCCESS;
  });
}

CUresult update(CUstream hStream, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                size_t count, unsigned flags) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graphMutex());
    const auto position = stream.capture;
    if (position == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (!position->capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    std::vector<Edge> edges;
    const CUresult status = readEdges(*position->capture->graph, dependencies, data, count, edges);
    if (status != CUDA_SUCCESS) return status;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
      for (const Edge& left : std::exchange(position->dependencies, {})) {
        if (!isAmong(edges, left.node)) left.node->mustBeJoined = false;
      }
    }
    addDependencies(*position, edges);
    return CUDA_SUCCESS;
  });
}

}  // namespace

DRIVER_CALL cuStreamBeginCapture(CUstream hStream) {
  return beginNew(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
DRIVER_CALL cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return beginNew(hStream, mode);
}

DRIVER_CALL cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                        const CUgraphNode* dependencies,
                                        const CUgraphEdgeData* dependencyData,
                                        size_t numDependencies, CUstreamCaptureMode mode) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    const std::lock_guard lock(graphMutex());
    const auto graph = Handles<Graph>::all().find(hGraph);
    if (graph == nullptr || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Edge> edges;
    CUresult status = readEdges(*graph, dependencies, dependencyData, numDependencies, edges);
    if (status == CUDA_SUCCESS) status = mayBegin(stream.context, stream, mode);
    if (status == CUDA_SUCCESS) begin(stream, graph, false, std::move(edges), mode);
    return status;
  });
}

DRIVER_CALL cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    const std::lock_guard lock(graphMutex());
    return end(stream, phGraph);
  });
}

DRIVER_CALL cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return info(hStream, {captureStatus});
}

DRIVER_CALL cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out) {
  return info(hStream, {captureStatus_out, id_out});
}
DRIVER_CALL cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                      cuuint64_t* id_out, CUgraph* graph_out,
                                      const CUgraphNode** dependencies_out,
                                      size_t* numDependencies_out) {
  return info(hStream, {captureStatus_out, id_out, graph_out, dependencies_out, nullptr,
                        numDependencies_out});
}
DRIVER_CALL cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                      cuuint64_t* id_out, CUgraph* graph_out,
                                      const CUgraphNode** dependencies_out,
                                      const CUgraphEdgeData** edgeData_out,
                                      size_t* numDependencies_out) {
  return info(hStream, {captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
                        numDependencies_out});
}

DRIVER_CALL cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies,
                                              size_t numDependencies, unsigned int flags) {
  return update(hStream, dependencies, nullptr, numDependencies, flags);
}
DRIVER_CALL cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* dependencies,
                                                 const CUgraphEdgeData* dependencyData,
                                                 size_t numDependencies, unsigned int flags) {
  return update(hStream, dependencies, dependencyData, numDependencies, flags);
}
