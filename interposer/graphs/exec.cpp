// Executable graphs. The first launch of one waits for the driver's verdict; later ones are
// enqueued, unless the graph allocates memory: then the driver may refuse any of them.
// A graph that kernels launch is known to the program by the driver's handle, which kernels need.
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/handle_table.h"

namespace interposer {

namespace {

struct Execs {
  std::shared_mutex mutex;
  std::unordered_map<std::uint64_t, bool> mayEnqueue;         ///< of those that were launched
  std::unordered_map<CUgraphExec, std::uint64_t> forKernels;  ///< the worker's handles of them
};

Execs& execs() {
  static Execs* const instance = new Execs;
  return *instance;
}

enum class Launch { first, enqueued, awaited };

Launch nextLaunch(CUgraphExec exec) {
  const std::uint64_t known = number(exec);
  const std::shared_lock lock(execs().mutex);
  const auto found = execs().mayEnqueue.find(known);
  if (found == execs().mayEnqueue.end()) return Launch::first;
  return found->second ? Launch::enqueued : Launch::awaited;
}

void noteLaunched(CUgraphExec exec) {
  unsigned takesMemory = 1;
  cuuint64_t forKernels = 0;
  if (remote::graphExecFacts(exec, &takesMemory, &forKernels) != CUDA_SUCCESS) return;
  const std::uint64_t known = number(exec);
  const std::lock_guard lock(execs().mutex);
  execs().mayEnqueue[known] = takesMemory == 0;
}

/// Replaces the worker's handle by the one that kernels can use.
CUresult showToKernels(CUgraphExec& exec) {
  unsigned takesMemory = 0;
  cuuint64_t forKernels = 0;
  if (const CUresult status = remote::graphExecFacts(exec, &takesMemory, &forKernels);
      status != CUDA_SUCCESS || forKernels == 0)
    return status;
  const std::uint64_t known = number(exec);
  exec = handle<CUgraphExec>(forKernels);
  const std::lock_guard lock(execs().mutex);
  execs().forKernels[exec] = known;
  return CUDA_SUCCESS;
}

/// What all calls that make an executable graph do. Fills in what `params` gives back.
/// `uploadStream` replaces that of `params`.
CUresult instantiate(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS& params,
                     CUstream uploadStream = nullptr) {
  params.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  params.hErrNode_out = nullptr;
  Call call;
  if (!call.begin(CallNumber::cuGraphInstantiateWithParams, 24, kOrdered)) return call.status();
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(number(graph));
  call.encoder().put(params.flags);
  const bool uploads = (params.flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  call.encoder().put(uploads ? number(uploadStream) : 0);
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  const auto made = reply.get<std::uint64_t>();
  const auto result = reply.get<CUgraphInstantiateResult>();
  const auto node = reply.get<std::uint64_t>();
  if (!reply.ok()) return status == CUDA_SUCCESS ? CUDA_ERROR_DEVICE_UNAVAILABLE : status;
  params.result_out = result;
  params.hErrNode_out = handle<CUgraphNode>(node);
  if (status != CUDA_SUCCESS) return status;
  *exec = handle<CUgraphExec>(made);
  const bool forKernels = (params.flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0;
  return forKernels ? showToKernels(*exec) : CUDA_SUCCESS;
}

}  // namespace

std::uint64_t number(CUgraphExec exec) {
  const auto given = (std::uint64_t)exec;
  if (wire::handleKind(given) == wire::HandleKind::graphExec) return given;
  const std::shared_lock lock(execs().mutex);
  const auto found = execs().forKernels.find(exec);
  return found == execs().forKernels.end() ? given : found->second;
}

/// Uploads are only for cuGraphInstantiateWithParams, which names a stream.
CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph,
                                     unsigned long long flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = flags;
  return instantiate(phGraphExec, hGraph, params);
}

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) {
  const Launch launch = nextLaunch(hGraph);
  // One of its nodes may record an event that another process uses.
  const Waiting waiting(launch != Launch::enqueued || sharesEvents());
  const CUresult status = remote::cuGraphLaunch(hGraph, hStream);
  if (status == CUDA_SUCCESS && launch == Launch::first) noteLaunched(hGraph);
  return status;
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  const CUresult status = remote::cuGraphExecDestroy(hGraphExec);
  if (status != CUDA_SUCCESS) return status;
  const std::uint64_t known = number(hGraphExec);
  const std::lock_guard lock(execs().mutex);
  execs().mayEnqueue.erase(known);
  execs().forKernels.erase(hGraphExec);
  return status;
}

/// The driver has written nothing to the log of the earlier versions since CUDA 12.
CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                            char* logBuffer, size_t bufferSize) {
  if (logBuffer != nullptr && bufferSize > 0) *logBuffer = '\0';
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  const CUresult status = instantiate(phGraphExec, hGraph, params);
  if (phErrorNode != nullptr) *phErrorNode = params.hErrNode_out;
  return status;
}

CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                               char* logBuffer, size_t bufferSize) {
  return interposer::cuGraphInstantiate(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams,
                                      CUstream defaultStream) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (instantiateParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUstream stream = instantiateParams->hUploadStream;
  return instantiate(phGraphExec, hGraph, *instantiateParams,
                     stream != nullptr ? stream : defaultStream);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo* resultInfo) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (resultInfo == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuGraphExecUpdate_v2, 16, kOrdered)) return call.status();
  call.encoder().put(number(hGraphExec));
  call.encoder().put(number(hGraph));
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  const auto result = reply.get<CUgraphExecUpdateResult>();
  const auto node = reply.get<std::uint64_t>();
  const auto from = reply.get<std::uint64_t>();
  if (reply.ok()) *resultInfo = {result, handle<CUgraphNode>(node), handle<CUgraphNode>(from)};
  return status;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
                           CUgraphExecUpdateResult* updateResult_out) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult status = interposer::cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
  if (hErrorNode_out != nullptr) *hErrorNode_out = info.errorNode;
  if (updateResult_out != nullptr) *updateResult_out = info.result;
  return status;
}

}  // namespace interposer
