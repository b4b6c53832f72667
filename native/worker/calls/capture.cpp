// Stream capture. The gate is told before a stream begins or joins one, and keeps from asking the
// driver about streams meanwhile.
#include "native/worker/driver/capture_status.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Tells the per-thread default streams of different threads apart.
const void* ownerOf(const Thread& thread, CUstream stream) {
  return stream == CU_STREAM_PER_THREAD ? &thread : nullptr;
}

/// Of a per-thread stream, the current context.
CUcontext contextOf(const Thread& thread, CUstream stream) {
  CUcontext context = nullptr;
  if (stream == CU_STREAM_PER_THREAD ||
      thread.driver.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS)
    thread.driver.cuCtxGetCurrent(&context);
  return context;
}

/// Whether the driver says so. An error says nothing: without a current context, each question
/// about a per-thread stream fails.
bool capturesNothing(const Driver& driver, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return driver.cuStreamIsCapturing != nullptr &&
         driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_NONE;
}

struct Info {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;

  CUresult ask(const Thread& thread, CUstream stream) {
    if (thread.driver.cuStreamGetCaptureInfo_v3 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return thread.driver.cuStreamGetCaptureInfo_v3(stream, &status, &id, &graph, &nodes, &edges,
                                                   &count);
  }
};

/// Tells the gate. An error refuses the capture.
CUresult aboutToCapture(Thread& thread, CUstream stream) {
  const CUresult status = thread.session.gate.aboutToCapture(stream);
  if (status != CUDA_SUCCESS) thread.session.reportRefusedCapture(status);
  return status;
}

/// `begin` calls the driver. `into`: the handle of the program's graph, or 0.
template <class Begin>
CUresult beginCapture(Thread& thread, CUstream stream, std::uint64_t into, Begin begin) {
  if (into == 0 && thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  Session& session = thread.session;
  if (const CUresult status = aboutToCapture(thread, stream); status != CUDA_SUCCESS) return status;
  const auto blind = session.gate.blind();
  if (const CUresult status = begin(); status != CUDA_SUCCESS) return status;
  Info info;
  auto* const context = contextOf(thread, stream);
  if (into == 0 && info.ask(thread, stream) == CUDA_SUCCESS && info.graph != nullptr)
    session.captures.began({stream, ownerOf(thread, stream), context,
                            thread.add(wire::HandleKind::graph, info.graph), true});
  else
    session.captures.began({stream, ownerOf(thread, stream), context, into, false});
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuStreamBeginCapture_v2(Thread& thread, CUstream hStream, CUstreamCaptureMode mode) {
  return beginCapture(thread, hStream, 0,
                      [&] { return thread.driver.cuStreamBeginCapture_v2(hStream, mode); });
}

CUresult cuStreamBeginCaptureToGraph(Thread& thread, CUstream hStream, CUgraph hGraph,
                                     const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  const std::uint64_t graph = thread.session.handles.handleOf(wire::HandleKind::graph, hGraph);
  return beginCapture(thread, hStream, graph, [&] {
    return thread.driver.cuStreamBeginCaptureToGraph(hStream, hGraph, dependencies, dependencyData,
                                                     numDependencies, mode);
  });
}

/// A capture may end although the call fails: when it was invalidated, its graph is gone. Then the
/// stream captured before the call, and does not any more.
CUresult cuStreamEndCapture(Thread& thread, CUstream hStream, CUgraph* phGraph) {
  const bool captured = takesPartInCapture(thread.driver, hStream);
  const CUresult status = thread.driver.cuStreamEndCapture(hStream, phGraph);
  if (status != CUDA_SUCCESS && !(captured && capturesNothing(thread.driver, hStream)))
    return status;
  Session& session = thread.session;
  session.handles.remove(session.captures.ended(
      hStream, ownerOf(thread, hStream), status == CUDA_SUCCESS, contextOf(thread, hStream)));
  return status;
}

/// The nodes that the stream's next node will depend on belong to the graph.
CUresult cuStreamGetCaptureInfo_v3(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUstream>(handle, &stream); status != CUDA_SUCCESS)
    return status;
  Info info;
  if (const CUresult status = info.ask(thread, stream); status != CUDA_SUCCESS) return status;
  const bool active = info.status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  const std::uint64_t graph = active ? thread.add(wire::HandleKind::graph, info.graph) : 0;
  const size_t count = active && info.count < wire::kMaxFrameBytes / 64 ? info.count : 0;
  out.put(info.status);
  out.put(graph);
  out.put(info.id);
  out.put<std::uint64_t>(count * sizeof(std::uint64_t));
  for (size_t i = 0; i < count; ++i)
    out.put<std::uint64_t>(
        thread.full() ? 0 : thread.add(wire::HandleKind::graphNode, info.nodes[i], graph));
  out.putBytes(info.edges, info.edges == nullptr ? 0 : count * sizeof *info.edges);
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  auto mode = in.get<CUstreamCaptureMode>();
  if (!in.finished()) return thread.refuseFrame();
  return thread.driver.cuThreadExchangeStreamCaptureMode(&mode);
}

CUresult capturesUnderWay(Thread& thread, cuuint64_t* state) {
  *state = thread.session.captures.state();
  return CUDA_SUCCESS;
}

/// The stream joins a capture if the event is of one.
CUresult cuStreamWaitEvent(Thread& thread, CUstream hStream, CUevent hEvent, unsigned int Flags) {
  if (!thread.session.captures.any()) [[likely]]
    return thread.driver.cuStreamWaitEvent(hStream, hEvent, Flags);
  if (const CUresult status = aboutToCapture(thread, hStream); status != CUDA_SUCCESS)
    return status;
  const auto blind = thread.session.gate.blind();
  return thread.driver.cuStreamWaitEvent(hStream, hEvent, Flags);
}

}  // namespace worker
