// Calls that read and change the parameters of nodes.
#include <cstring>

#include "native/simulator/event.h"
#include "native/simulator/graph.h"
#include "native/simulator/graph_memory.h"

using namespace simulator;

namespace {

/// Runs give(Work&) on the work of a node of one type.
template <class NodeWork, class Give>
CUresult get(CUgraphNode hNode, const void* out, Give&& give) {
  return onNode(hNode, [&](GraphNode& node) -> CUresult {
    auto* work = std::get_if<NodeWork>(&node.work);
    if (work == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    give(*work);
    return CUDA_SUCCESS;
  });
}

CUresult set(CUgraphNode hNode, const CUgraphNodeParams& parameters) {
  return onNode(hNode, [&](GraphNode& node) -> CUresult {
    if (parameters.type != typeOf(node.work)) return CUDA_ERROR_INVALID_VALUE;
    if (parameters.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        parameters.type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
        parameters.type == CU_GRAPH_NODE_TYPE_GRAPH ||
        parameters.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
      return CUDA_ERROR_NOT_SUPPORTED;
    Work made = EmptyWork{};
    const CUresult status = makeWork(parameters, made);
    return status == CUDA_SUCCESS ? replaceWork(node.work, std::move(made)) : status;
  });
}

/// The arrays of a kernel's arguments that the node owns.
template <class Parameters>
void giveArguments(KernelWork& kernel, Parameters& out) {
  out.kernelParams = out.extra = nullptr;
  if (kernel.packed) {
    kernel.packedBytes = kernel.parameters.size();
    kernel.view = {CU_LAUNCH_PARAM_BUFFER_POINTER, kernel.parameters.data(),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &kernel.packedBytes, CU_LAUNCH_PARAM_END};
    out.extra = kernel.view.data();
    return;
  }
  kernel.view.clear();
  for (const ParameterInfo& parameter : kernel.function->info.parameters)
    kernel.view.push_back(kernel.parameters.data() + parameter.offset);
  if (!kernel.view.empty()) out.kernelParams = kernel.view.data();
}

template <class Parameters>
void giveKernel(KernelWork& kernel, Parameters& out) {
  const LaunchRequest& request = kernel.request;
  out.gridDimX = request.grid[0], out.gridDimY = request.grid[1], out.gridDimZ = request.grid[2];
  out.blockDimX = request.block[0], out.blockDimY = request.block[1];
  out.blockDimZ = request.block[2];
  out.sharedMemBytes = request.dynamicShared;
  giveArguments(kernel, out);
}

template <class Given>
CUgraphNodeParams kernelParameters(const Given& given) {
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_KERNEL;
  std::memcpy(&parameters.kernel, &given, sizeof given);  // all versions begin alike
  return parameters;
}

}  // namespace

DRIVER_CALL cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : set(hNode, *nodeParams);
}

DRIVER_CALL cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return get<KernelWork>(hNode, nodeParams, [&](KernelWork& kernel) {
    *nodeParams = {};
    nodeParams->func =
        kernel.func != nullptr ? kernel.func : handleOf<CUfunction>(kernel.function.get());
    giveKernel(kernel, *nodeParams);
  });
}
DRIVER_CALL cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return get<KernelWork>(hNode, nodeParams, [&](KernelWork& kernel) {
    *nodeParams = {};
    nodeParams->func = kernel.func;
    nodeParams->kern = kernel.kern;
    nodeParams->ctx = handleOf<CUcontext>(&kernel.function->module.context);
    giveKernel(kernel, *nodeParams);
  });
}

DRIVER_CALL cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                       const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE
                               : set(hNode, kernelParameters(*nodeParams));
}
DRIVER_CALL cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                          const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE
                               : set(hNode, kernelParameters(*nodeParams));
}

DRIVER_CALL cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  return get<CopyWork>(hNode, nodeParams,
                       [&](CopyWork& copying) { *nodeParams = copying.parameters; });
}
DRIVER_CALL cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  parameters.memcpy.copyParams = *nodeParams;
  return set(hNode, parameters);
}

DRIVER_CALL cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return get<MemsetWork>(hNode, nodeParams,
                         [&](MemsetWork& filling) { *nodeParams = filling.parameters; });
}
DRIVER_CALL cuGraphMemsetNodeSetParams(CUgraphNode hNode,
                                       const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_MEMSET;
  std::memcpy(&parameters.memset, nodeParams, sizeof *nodeParams);  // v2 begins as v1
  return set(hNode, parameters);
}

DRIVER_CALL cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  return get<HostWork>(hNode, nodeParams, [&](HostWork& host) { *nodeParams = host.parameters; });
}
DRIVER_CALL cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_HOST;
  parameters.host = {nodeParams->fn, nodeParams->userData};
  return set(hNode, parameters);
}

DRIVER_CALL cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  return get<ChildWork>(hNode, phGraph,
                        [&](ChildWork& child) { *phGraph = handleOf<CUgraph>(child.graph.get()); });
}

DRIVER_CALL cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return get<RecordWork>(hNode, event_out, [&](RecordWork& record) {
    *event_out = handleOf<CUevent>(record.event.get());
  });
}
DRIVER_CALL cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  parameters.eventRecord.event = event;
  return set(hNode, parameters);
}

DRIVER_CALL cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return get<WaitWork>(hNode, event_out,
                       [&](WaitWork& wait) { *event_out = handleOf<CUevent>(wait.event.get()); });
}
DRIVER_CALL cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  parameters.eventWait.event = event;
  return set(hNode, parameters);
}

DRIVER_CALL cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
                                           CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams_out) {
  return get<OperationsWork>(hNode, nodeParams_out, [&](OperationsWork& batch) {
    *nodeParams_out = {handleOf<CUcontext>(batch.context),
                       static_cast<unsigned>(batch.operations.size()), batch.operations.data(),
                       batch.flags};
  });
}
DRIVER_CALL cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode,
                                           const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  std::memcpy(&parameters.memOp, nodeParams, sizeof *nodeParams);  // v2 is as v1
  return set(hNode, parameters);
}

DRIVER_CALL cuGraphMemAllocNodeGetParams(CUgraphNode hNode,
                                         CUDA_MEM_ALLOC_NODE_PARAMS* params_out) {
  return get<AllocateWork>(hNode, params_out, [&](AllocateWork& allocating) {
    *params_out = allocating.parameters;
    params_out->accessDescs = allocating.access.empty() ? nullptr : allocating.access.data();
  });
}

DRIVER_CALL cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr* dptr_out) {
  return get<FreeWork>(hNode, dptr_out,
                       [&](FreeWork& freeing) { *dptr_out = freeing.memory->address; });
}

DRIVER_CALL cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                          CUkernelNodeAttrValue* value_out) {
  return onNode(hNode, [&](GraphNode& node) -> CUresult {
    const auto* kernel = std::get_if<KernelWork>(&node.work);
    LaunchRequest unused;
    if (kernel == nullptr || value_out == nullptr || !apply(attr, {}, unused))
      return CUDA_ERROR_INVALID_VALUE;
    const auto found = kernel->attributes.find(attr);
    *value_out = found == kernel->attributes.end() ? CUkernelNodeAttrValue{} : found->second;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                          const CUkernelNodeAttrValue* value) {
  return onNode(hNode, [&](GraphNode& node) -> CUresult {
    auto* kernel = std::get_if<KernelWork>(&node.work);
    LaunchRequest unused;
    if (kernel == nullptr || value == nullptr || !apply(attr, *value, unused))
      return CUDA_ERROR_INVALID_VALUE;
    kernel->attributes.insert_or_assign(attr, *value);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
  return onNode(src, [&](GraphNode& from) -> CUresult {
    const auto to = Handles<GraphNode>::all().find(dst);
    if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto* source = std::get_if<KernelWork>(&from.work);
    auto* target = std::get_if<KernelWork>(&to->work);
    if (source == nullptr || target == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (&source->function->module.context != &target->function->module.context)
      return CUDA_ERROR_INVALID_VALUE;
    if (source != target) target->attributes = source->attributes;
    return CUDA_SUCCESS;
  });
}
