// Stream capture. What is captured, the driver knows; here stands only whether a capture may be
// under way, since programs ask for it before every other call.
#include <map>
#include <mutex>
#include <vector>

#include "interposer/contexts/contexts.h"
#include "interposer/graphs/elements.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

/// A capture has begun or ended, in this thread's view: learns how many are under way.
CUresult changed(CUresult status) {
  cuuint64_t state = 0;
  if (remote::capturesUnderWay(&state) == CUDA_SUCCESS) Session::current()->noteCaptures(state);
  return status;
}

/// Dependencies of the next node of a stream. The program may read them until it uses the stream
/// again.
struct Next {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> edges;
};

struct Nexts {
  std::mutex mutex;
  std::map<std::pair<CUstream, const Thread*>, Next> ofStream;
};

Next& nextOf(CUstream stream) {
  static Nexts* const nexts = new Nexts;
  const Thread* owner = stream == CU_STREAM_PER_THREAD ? &Thread::current() : nullptr;
  const std::lock_guard lock(nexts->mutex);
  return nexts->ofStream[{stream, owner}];
}

}  // namespace

CUresult cuStreamBeginCapture(CUstream hStream) {
  return interposer::cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return changed(remote::cuStreamBeginCapture_v2(hStream, mode));
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                     const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  return changed(remote::cuStreamBeginCaptureToGraph(hStream, hGraph, dependencies, dependencyData,
                                                     numDependencies, mode));
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  if (phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *phGraph = nullptr;
  return changed(remote::cuStreamEndCapture(hStream, phGraph));
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (captureStatus == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool lacksContext = isDefault(hStream) && Thread::current().context() == nullptr;
  if (lacksContext || Session::current()->capturing())
    return remote::cuStreamIsCapturing(hStream, captureStatus);
  *captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                cuuint64_t* id_out) {
  return interposer::cuStreamGetCaptureInfo_v2(hStream, captureStatus_out, id_out, nullptr, nullptr,
                                               nullptr);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   size_t* numDependencies_out) {
  return interposer::cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
                                               dependencies_out, nullptr, numDependencies_out);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edgeData_out,
                                   size_t* numDependencies_out) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (captureStatus_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *captureStatus_out = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!Session::current()->capturing()) return CUDA_SUCCESS;
  Call call;
  if (!call.begin(CallNumber::cuStreamGetCaptureInfo_v3, 8, kOrdered)) return call.status();
  call.encoder().put(number(hStream));
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  *captureStatus_out = reply.get<CUstreamCaptureStatus>();
  const auto graph = reply.get<std::uint64_t>();
  const auto id = reply.get<cuuint64_t>();
  const auto nodes = reply.getArray<std::uint64_t>(wire::kReplyBytes);
  const auto edges = reply.getArray<CUgraphEdgeData>(wire::kReplyBytes);
  if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (*captureStatus_out != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (dependencies_out != nullptr && edgeData_out == nullptr && haveData(edges))
    return CUDA_ERROR_LOSSY_QUERY;
  Next& next = nextOf(hStream);
  next.nodes.clear();
  for (const std::uint64_t node : nodes) next.nodes.push_back(handle<CUgraphNode>(node));
  next.edges.assign(edges.begin(), edges.end());
  if (id_out != nullptr) *id_out = id;
  if (graph_out != nullptr) *graph_out = handle<CUgraph>(graph);
  if (dependencies_out != nullptr) *dependencies_out = next.nodes.data();
  if (edgeData_out != nullptr) *edgeData_out = next.edges.empty() ? nullptr : next.edges.data();
  if (numDependencies_out != nullptr) *numDependencies_out = next.nodes.size();
  return CUDA_SUCCESS;
}

/// The worker's thread for this one follows, since its driver knows the mode by thread.
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuThreadExchangeStreamCaptureMode, 8, kUnordered))
    return call.status();
  call.encoder().put(*mode);
  if (const CUresult status = call.enqueue(); status != CUDA_SUCCESS) return status;
  std::swap(*mode, Thread::current().captureMode);
  return CUDA_SUCCESS;
}

}  // namespace interposer
