#include "interposer/graphs/pageable_copy.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "interposer/graphs/elements.h"
#include "interposer/graphs/node_params.h"
#include "interposer/memory/block.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

struct Copy : Block {
  std::byte* staging = nullptr;  ///< null: both ends are in the program
  CUuserObject object = nullptr;

  HostEnd packed() const { return packedAt(staging); }
  bool sameWay(const Block& other) const {
    return (from.begin == nullptr) == (other.from.begin == nullptr) &&
           (to.begin == nullptr) == (other.to.begin == nullptr);
  }
};

std::atomic<bool> everMade{false};

struct Ended {
  std::mutex mutex;
  std::vector<Copy*> copies;
};

Ended& ended() {
  static Ended* const instance = new Ended;
  return *instance;
}

/// Function of the host node. Runs on the thread for host functions.
void runCopy(void* argument) {
  const Copy& copy = *static_cast<Copy*>(argument);
  const bool inside = copy.staging == nullptr;
  copyRows(inside || copy.from.begin == nullptr ? copy.to : copy.packed(),
           inside || copy.from.begin != nullptr ? copy.from : copy.packed(), copy);
}

/// The destructor of the user object that owns the copy. No CUDA call may be made here.
void noteEnded(void* argument) {
  const std::lock_guard lock(ended().mutex);
  ended().copies.push_back(static_cast<Copy*>(argument));
}

/// A copy with its pinned memory, owned by a user object that the caller moves into a graph.
CUresult make(const CUDA_MEMCPY3D& params, Copy*& made) {
  const RelaxedCapture relaxed;
  releaseStaging();
  auto copy = std::make_unique<Copy>(Copy{readBlock(params)});
  if (copy->from.begin == nullptr || copy->to.begin == nullptr) {
    void* memory = nullptr;
    if (const CUresult status =
            interposer::cuMemHostAlloc(&memory, copy->bytes(), CU_MEMHOSTALLOC_PORTABLE);
        status != CUDA_SUCCESS)
      return status;
    copy->staging = static_cast<std::byte*>(memory);
  }
  const CUresult status = interposer::cuUserObjectCreate(&copy->object, copy.get(), noteEnded, 1,
                                                         CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (status != CUDA_SUCCESS) {
    if (copy->staging != nullptr) interposer::cuMemFreeHost(copy->staging);
    return status;
  }
  everMade = true;
  made = copy.release();
  return CUDA_SUCCESS;
}

/// Host node and copy node, in the order of the copy's direction.
CUresult addNodes(CUgraph graph, Copy& copy, CUcontext context) {
  const CUDA_HOST_NODE_PARAMS host{runCopy, &copy};
  if (copy.staging == nullptr) {
    CUgraphNode only = nullptr;
    return interposer::cuGraphAddHostNode(&only, graph, nullptr, 0, &host);
  }
  const CUDA_MEMCPY3D params = throughPinned(copy, copy.staging);
  CUgraphNode nodes[2]{};
  const auto addHost = [&](CUgraphNode* node, const CUgraphNode* after, std::size_t count) {
    return interposer::cuGraphAddHostNode(node, graph, after, count, &host);
  };
  const auto addCopy = [&](CUgraphNode* node, const CUgraphNode* after, std::size_t count) {
    return interposer::cuGraphAddMemcpyNode(node, graph, after, count, &params, context);
  };
  const bool upload = copy.from.begin != nullptr;
  const CUresult status = upload ? addHost(&nodes[0], nullptr, 0) : addCopy(&nodes[0], nullptr, 0);
  if (status != CUDA_SUCCESS) return status;
  return upload ? addCopy(&nodes[1], nodes, 1) : addHost(&nodes[1], nodes, 1);
}

/// Makes the child graph, and calls `use` with it.
template <class Use>
CUresult withChild(const CUgraphNodeParams& params, Use use) {
  Copy* copy = nullptr;
  CUgraph child = nullptr;
  if (const CUresult status = remote::cuGraphCreate(&child, 0); status != CUDA_SUCCESS)
    return status;
  CUresult status = make(params.memcpy.copyParams, copy);
  if (status == CUDA_SUCCESS) {
    status = remote::cuGraphRetainUserObject(child, copy->object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (status != CUDA_SUCCESS) remote::cuUserObjectRelease(copy->object, 1);
  }
  if (status == CUDA_SUCCESS) status = addNodes(child, *copy, params.memcpy.copyCtx);
  if (status == CUDA_SUCCESS) status = use(child);
  remote::cuGraphDestroy(child);
  forgetGraph(child);
  return status;
}

/// The child graph of a node that stands for a copy.
struct Inside {
  Copy* copy = nullptr;
  CUgraph child = nullptr;
  CUgraphNode host = nullptr;
  CUgraphNode device = nullptr;  ///< null: both ends are in the program
};

bool look(CUgraphNode node, Inside& inside) {
  if (!everMade) return false;
  CUgraphNodeType type{};
  if (remote::cuGraphNodeGetType(node, &type) != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_GRAPH ||
      remote::cuGraphChildGraphNodeGetGraph(node, &inside.child) != CUDA_SUCCESS)
    return false;
  Elements elements;
  if (fetchElements(wire::GraphElements::nodes, number(inside.child), elements) != CUDA_SUCCESS ||
      elements.nodes.size() > 2)
    return false;
  for (CUgraphNode each : elements.nodes) {
    CUgraphNodeParams params{};
    if (remote::cuGraphNodeGetType(each, &type) != CUDA_SUCCESS) return false;
    if (type == CU_GRAPH_NODE_TYPE_MEMCPY) inside.device = each;
    if (type != CU_GRAPH_NODE_TYPE_HOST) continue;
    inside.host = each;
    if (fetchNodeParams(each, type, params) == CUDA_SUCCESS && params.host.fn == runCopy)
      inside.copy = static_cast<Copy*>(params.host.userData);
  }
  return inside.copy != nullptr;
}

/// Makes the nodes inside do another copy of the same kind.
CUresult replace(const Inside& inside, const CUDA_MEMCPY3D& params) {
  if (!inside.copy->sameWay(readBlock(params))) return CUDA_ERROR_NOT_SUPPORTED;
  Copy* copy = nullptr;
  if (const CUresult status = make(params, copy); status != CUDA_SUCCESS) return status;
  CUresult status =
      remote::cuGraphRetainUserObject(inside.child, copy->object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (status != CUDA_SUCCESS) return remote::cuUserObjectRelease(copy->object, 1), status;
  if (inside.device != nullptr) {
    const CUDA_MEMCPY3D staged = throughPinned(*copy, copy->staging);
    status = interposer::cuGraphMemcpyNodeSetParams(inside.device, &staged);
  }
  const CUDA_HOST_NODE_PARAMS host{runCopy, copy};
  if (status == CUDA_SUCCESS) status = interposer::cuGraphHostNodeSetParams(inside.host, &host);
  const CUuserObject unused = status == CUDA_SUCCESS ? inside.copy->object : copy->object;
  remote::cuGraphReleaseUserObject(inside.child, unused, 1);
  return status;
}

}  // namespace

bool isPageable(const CUDA_MEMCPY3D& params) { return isPageable(readBlock(params)); }

CUresult addPageableCopy(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                         const CUgraphEdgeData* edges, std::size_t count,
                         const CUgraphNodeParams& params) {
  return withChild(params, [&](CUgraph child) {
    CUgraphNodeParams whole{};
    whole.type = CU_GRAPH_NODE_TYPE_GRAPH;
    whole.graph.graph = child;
    return interposer::cuGraphAddNode_v2(node, graph, dependencies, edges, count, &whole);
  });
}

CUresult setPageableCopy(CUgraphNode node, const CUgraphNodeParams& params, bool& done) {
  Inside inside;
  const bool is = look(node, inside);
  done = is || isPageable(params.memcpy.copyParams);
  if (!done) return CUDA_SUCCESS;
  return is ? replace(inside, params.memcpy.copyParams) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult setPageableCopyInExec(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params,
                               bool& done) {
  Inside inside;
  const bool is = look(node, inside);
  done = is || isPageable(params.memcpy.copyParams);
  if (!done) return CUDA_SUCCESS;
  if (!is || !inside.copy->sameWay(readBlock(params.memcpy.copyParams)))
    return CUDA_ERROR_NOT_SUPPORTED;
  return withChild(params, [&](CUgraph child) {
    return remote::cuGraphExecChildGraphNodeSetParams(exec, node, child);
  });
}

bool findPageableCopy(CUgraphNode node, CUDA_MEMCPY3D& copy) {
  Inside inside;
  if (!look(node, inside)) return false;
  copy = inside.copy->params;
  return true;
}

bool captures(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return interposer::cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult captureCopy(const CUDA_MEMCPY3D& copy, CUstream stream) {
  CUstreamCaptureStatus capture{};
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  if (const CUresult status = interposer::cuStreamGetCaptureInfo_v3(
          stream, &capture, nullptr, &graph, &dependencies, &edges, &count);
      status != CUDA_SUCCESS)
    return status;
  if (capture != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params.memcpy.copyCtx = Thread::current().context();
  params.memcpy.copyParams = copy;
  CUgraphNode node = nullptr;
  if (const CUresult status = addPageableCopy(&node, graph, dependencies, edges, count, params);
      status != CUDA_SUCCESS)
    return status;
  return remote::cuStreamUpdateCaptureDependencies_v2(stream, &node, nullptr, 1,
                                                      CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

/// Not during a capture, which forbids to free memory.
void releaseStaging() {
  if (Session::current()->capturing()) return;
  std::vector<Copy*> copies;
  {
    const std::lock_guard lock(ended().mutex);
    copies.swap(ended().copies);
  }
  for (Copy* copy : copies) {
    if (copy->staging != nullptr) interposer::cuMemFreeHost(copy->staging);
    delete copy;
  }
}

RelaxedCapture::RelaxedCapture() : wanted_(Session::current()->capturing()) {
  if (wanted_) interposer::cuThreadExchangeStreamCaptureMode(&mode_);
}

RelaxedCapture::~RelaxedCapture() {
  if (wanted_) interposer::cuThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace interposer
