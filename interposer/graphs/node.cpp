// Calls that add a node, change it or return its parameters. The calls for one kind of node are
// forwarded to those for all kinds. Copies of pageable memory go through pageable_copy.h.
#include <cstring>

#include "interposer/graphs/node_frame.h"
#include "interposer/graphs/node_params.h"
#include "interposer/graphs/pageable_copy.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

CUgraphNodeParams paramsOf(CUgraphNodeType type) {
  CUgraphNodeParams params{};
  params.type = type;
  return params;
}

/// A structure of an earlier version is a prefix of the later one.
template <class T>
CUgraphNodeParams kernelParams(const T& given) {
  CUgraphNodeParams params = paramsOf(CU_GRAPH_NODE_TYPE_KERNEL);
  std::memcpy(&params.kernel, &given, sizeof given);
  return params;
}

CUgraphNodeParams copyParams(const CUDA_MEMCPY3D& given, CUcontext context) {
  CUgraphNodeParams params = paramsOf(CU_GRAPH_NODE_TYPE_MEMCPY);
  params.memcpy.copyCtx = context;
  params.memcpy.copyParams = given;
  return params;
}

CUgraphNodeParams hostParams(const CUDA_HOST_NODE_PARAMS& given) {
  CUgraphNodeParams params = paramsOf(CU_GRAPH_NODE_TYPE_HOST);
  params.host = {given.fn, given.userData};
  return params;
}

template <class From, class To>
void copyStructure(const From& from, To& to) {
  static_assert(sizeof to <= sizeof from);
  std::memcpy(&to, &from, sizeof to);
}

CUgraphNodeParams operationParams(const CUDA_BATCH_MEM_OP_NODE_PARAMS& given) {
  CUgraphNodeParams params = paramsOf(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  copyStructure(given, params.memOp);
  return params;
}

struct Dependencies {
  const CUgraphNode* nodes;
  const CUgraphEdgeData* edges;
  std::size_t count;
};

CUresult add(CUgraphNode* node, CUgraph graph, const Dependencies& dependencies,
             CUgraphNodeParams& params) {
  if (node == nullptr || (dependencies.nodes == nullptr && dependencies.count > 0) ||
      dependencies.count > wire::kMaxFrameBytes / 16)
    return CUDA_ERROR_INVALID_VALUE;
  if (params.type == CU_GRAPH_NODE_TYPE_MEMCPY && isPageable(params.memcpy.copyParams))
    return addPageableCopy(node, graph, dependencies.nodes, dependencies.edges, dependencies.count,
                           params);
  NodeFrame frame;
  if (const CUresult status = frame.read(params); status != CUDA_SUCCESS) return status;
  Call call;
  if (!call.begin(CallNumber::cuGraphAddNode_v2, 24 + 16 * dependencies.count + frame.bytes(),
                  kOrdered))
    return call.status();
  call.encoder().put(number(graph));
  call.encoder().putBytes(dependencies.nodes, 8 * dependencies.count);
  call.encoder().putBytes(dependencies.edges,
                          dependencies.edges == nullptr ? 0 : 8 * dependencies.count);
  frame.put(call.encoder());
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto made = reply.get<std::uint64_t>();
  const auto memory = reply.get<CUdeviceptr>();
  const auto bodies = reply.getArray<std::uint64_t>(wire::kReplyBytes);
  if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  *node = handle<CUgraphNode>(made);
  if (params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) params.alloc.dptr = memory;
  if (params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
    params.conditional.phGraph_out = keepBodies(*node, graph, bodies.size(), bodies.data());
  return CUDA_SUCCESS;
}

CUresult addNew(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                std::size_t count, CUgraphNodeParams params) {
  return add(node, graph, {dependencies, nullptr, count}, params);
}

/// Both calls that change a node. `objects`: the handles before the parameters. `setPageable`
/// changes a copy that the worker cannot do, and returns whether it is one.
template <class SetPageable>
CUresult change(CallNumber which, std::initializer_list<std::uint64_t> objects,
                const CUgraphNodeParams& params, SetPageable setPageable) {
  if (params.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    bool done = false;
    const CUresult status = setPageable(done);
    if (done) return status;
  }
  NodeFrame frame;
  if (const CUresult status = frame.read(params); status != CUDA_SUCCESS) return status;
  Call call;
  if (!call.begin(which, 8 * objects.size() + frame.bytes(), kOrdered)) return call.status();
  for (const std::uint64_t object : objects) call.encoder().put(object);
  frame.put(call.encoder());
  wire::Decoder reply;
  return call.wait(reply);
}

CUresult set(CUgraphNode node, const CUgraphNodeParams& params) {
  return change(CallNumber::cuGraphNodeSetParams, {number(node)}, params,
                [&](bool& done) { return setPageableCopy(node, params, done); });
}

CUresult setInExec(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params) {
  return change(CallNumber::cuGraphExecNodeSetParams, {number(exec), number(node)}, params,
                [&](bool& done) { return setPageableCopyInExec(exec, node, params, done); });
}

/// Runs `then` if the program gave the structure.
template <class T, class Then>
CUresult given(const T* structure, Then then) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  return structure == nullptr ? CUDA_ERROR_INVALID_VALUE : then(*structure);
}

template <class T, class Of>
CUresult get(CUgraphNode node, CUgraphNodeType type, T* to, Of of) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params{};
  if (const CUresult status = fetchNodeParams(node, type, params); status != CUDA_SUCCESS)
    return status;
  copyStructure(of(params), *to);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                           const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData,
                           size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return given(nodeParams, [&](const CUgraphNodeParams&) {
    return add(phGraphNode, hGraph, {dependencies, dependencyData, numDependencies}, *nodeParams);
  });
}

CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                        size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return interposer::cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
                                       nodeParams);
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  return given(nodeParams, [&](const CUgraphNodeParams& params) { return set(hNode, params); });
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  CUgraphNodeParams* nodeParams) {
  return given(nodeParams, [&](const CUgraphNodeParams& params) {
    return setInExec(hGraphExec, hNode, params);
  });
}

// Kernels.

CUresult cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return given(nodeParams, [&](const auto& kernel) {
    return addNew(phGraphNode, hGraph, dependencies, numDependencies, kernelParams(kernel));
  });
}

CUresult cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return given(nodeParams, [&](const auto& kernel) {
    return addNew(phGraphNode, hGraph, dependencies, numDependencies, kernelParams(kernel));
  });
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams,
             [](const CUgraphNodeParams& params) { return params.kernel; });
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams,
             [](const CUgraphNodeParams& params) { return params.kernel; });
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                       const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return given(nodeParams, [&](const auto& kernel) { return set(hNode, kernelParams(kernel)); });
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                    const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return given(nodeParams, [&](const auto& kernel) { return set(hNode, kernelParams(kernel)); });
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return given(nodeParams, [&](const auto& kernel) {
    return setInExec(hGraphExec, hNode, kernelParams(kernel));
  });
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return given(nodeParams, [&](const auto& kernel) {
    return setInExec(hGraphExec, hNode, kernelParams(kernel));
  });
}

// Copies.

CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMCPY3D* copy, CUcontext ctx) {
  return given(copy, [&](const CUDA_MEMCPY3D& given) {
    return addNew(phGraphNode, hGraph, dependencies, numDependencies, copyParams(given, ctx));
  });
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (nodeParams != nullptr && findPageableCopy(hNode, *nodeParams)) return CUDA_SUCCESS;
  return get(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams,
             [](const CUgraphNodeParams& params) { return params.memcpy.copyParams; });
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  return given(nodeParams, [&](const CUDA_MEMCPY3D& copy) {
    return set(hNode, copyParams(copy, Thread::current().context()));
  });
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMCPY3D* copy, CUcontext ctx) {
  return given(copy, [&](const CUDA_MEMCPY3D& given) {
    return setInExec(hGraphExec, hNode, copyParams(given, ctx));
  });
}

// Host functions.

CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                            const CUgraphNode* dependencies, size_t numDependencies,
                            const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return given(nodeParams, [&](const CUDA_HOST_NODE_PARAMS& host) {
    return addNew(phGraphNode, hGraph, dependencies, numDependencies, hostParams(host));
  });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  return get(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams,
             [](const CUgraphNodeParams& params) { return params.host; });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return given(nodeParams,
               [&](const CUDA_HOST_NODE_PARAMS& host) { return set(hNode, hostParams(host)); });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return given(nodeParams, [&](const CUDA_HOST_NODE_PARAMS& host) {
    return setInExec(hGraphExec, hNode, hostParams(host));
  });
}

// Memory.

CUresult cuGraphAddMemAllocNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                const CUgraphNode* dependencies, size_t numDependencies,
                                CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams) {
  return given(nodeParams, [&](const CUDA_MEM_ALLOC_NODE_PARAMS& allocation) {
    CUgraphNodeParams params = paramsOf(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    copyStructure(allocation, params.alloc);
    const CUresult status =
        add(phGraphNode, hGraph, {dependencies, nullptr, numDependencies}, params);
    if (status == CUDA_SUCCESS) nodeParams->dptr = params.alloc.dptr;
    return status;
  });
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS* params_out) {
  return get(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params_out,
             [](const CUgraphNodeParams& params) { return params.alloc; });
}

// Operations on memory in stream order.

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                  const CUgraphNode* dependencies, size_t numDependencies,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  return given(nodeParams, [&](const auto& operations) {
    return addNew(phGraphNode, hGraph, dependencies, numDependencies, operationParams(operations));
  });
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
                                        CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams_out) {
  return get(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams_out,
             [](const CUgraphNodeParams& params) { return params.memOp; });
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  return given(nodeParams,
               [&](const auto& operations) { return set(hNode, operationParams(operations)); });
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  return given(nodeParams, [&](const auto& operations) {
    return setInExec(hGraphExec, hNode, operationParams(operations));
  });
}

}  // namespace interposer
