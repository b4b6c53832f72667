#include "native/worker/calls/graph_node.h"

#include <algorithm>
#include <cstring>

#include "native/worker/calls/copy_operands.h"
#include "native/worker/calls/kernel_parameters.h"
#include "native/worker/calls/memory_operation.h"
#include "native/worker/session/thread.h"
#include "wire/graph.h"
#include "wire/launch.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Replaces a handle in a structure by its object.
template <class T>
CUresult findIn(const Thread& thread, T& object) {
  return thread.find<T>((std::uint64_t)object, &object);
}

/// The same for a handle that may be null.
template <class T>
CUresult findAny(const Thread& thread, T& object) {
  return object == nullptr ? CUDA_SUCCESS : findIn(thread, object);
}

/// The handle of a kernel's function; 0 if the program cannot know it.
std::uint64_t handleOf(Thread& thread, CUfunction function) {
  auto& handles = thread.session.handles;
  for (const auto kind : {wire::HandleKind::function, wire::HandleKind::kernel}) {
    if (const std::uint64_t known = handles.handleOf(kind, function); known != 0) return known;
  }
  CUmodule module = nullptr;
  if (thread.driver.cuFuncGetModule(&module, function) != CUDA_SUCCESS) return 0;
  const std::uint64_t owner = handles.handleOf(wire::HandleKind::module, module);
  return owner == 0 || thread.full() ? 0 : thread.add(wire::HandleKind::function, function, owner);
}

/// A kernel's parameters in one buffer. The driver keeps a copy of the program's buffer, or of each
/// parameter.
std::vector<std::byte> pack(const Thread& thread, const CUDA_KERNEL_NODE_PARAMS& kernel) {
  std::vector<std::byte> packed;
  if (kernel.kernelParams == nullptr && kernel.extra != nullptr) {
    const std::byte* buffer = nullptr;
    for (void** word = kernel.extra; *word != CU_LAUNCH_PARAM_END; word += 2) {
      if (*word == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<std::byte*>(word[1]);
      if (*word == CU_LAUNCH_PARAM_BUFFER_SIZE)
        packed.resize(*static_cast<const std::size_t*>(word[1]));
    }
    if (!packed.empty()) std::memcpy(packed.data(), buffer, packed.size());
    return packed;
  }
  std::size_t offset = 0;
  std::size_t size = 0;
  for (std::size_t i = 0; kernel.kernelParams != nullptr; ++i) {
    const CUresult status =
        kernel.func != nullptr ? thread.driver.cuFuncGetParamInfo(kernel.func, i, &offset, &size)
                               : thread.driver.cuKernelGetParamInfo(kernel.kern, i, &offset, &size);
    if (status != CUDA_SUCCESS || offset + size > wire::kMaxParameterBytes) break;
    packed.resize(std::max(packed.size(), offset + size));
    std::memcpy(packed.data() + offset, kernel.kernelParams[i], size);
  }
  return packed;
}

void put(wire::Encoder& out, const CUgraphNodeParams& params, const void* content = nullptr,
         std::size_t bytes = 0) {
  out.put(params);
  out.putBytes(content, bytes);
}

template <class T>
void hide(const Thread& thread, T& object) {
  object = (T)thread.session.handles.handleOf(HandleOf<T>::kind, (void*)object);
}

CUresult encodeKernel(Thread& thread, CUgraphNode node, CUgraphNodeParams& params,
                      wire::Encoder& out) {
  CUDA_KERNEL_NODE_PARAMS kernel{};
  if (const CUresult status = thread.driver.cuGraphKernelNodeGetParams_v2(node, &kernel);
      status != CUDA_SUCCESS)
    return status;
  const std::vector<std::byte> packed = pack(thread, kernel);
  hide(thread, kernel.kern);
  hide(thread, kernel.ctx);
  kernel.func =
      kernel.func != nullptr ? (CUfunction)handleOf(thread, kernel.func) : (CUfunction)kernel.kern;
  kernel.kernelParams = kernel.extra = nullptr;
  std::memcpy(&params.kernel, &kernel, sizeof kernel);
  put(out, params, packed.data(), packed.size());
  return CUDA_SUCCESS;
}

CUresult encodeHost(const Thread& thread, CUgraphNode node, CUgraphNodeParams& params,
                    wire::Encoder& out) {
  CUDA_HOST_NODE_PARAMS host{};
  if (const CUresult status = thread.driver.cuGraphHostNodeGetParams(node, &host);
      status != CUDA_SUCCESS)
    return status;
  if (host.fn == runInClient) {
    const HostFunction function = HostFunctions::instance().find(host.userData);
    params.host.fn = reinterpret_cast<CUhostFn>(function.function);
    params.host.userData = reinterpret_cast<void*>(function.userData);
  }
  put(out, params);
  return CUDA_SUCCESS;
}

CUresult encodeAllocation(const Thread& thread, CUgraphNode node, CUgraphNodeParams& params,
                          wire::Encoder& out) {
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
  if (const CUresult status = thread.driver.cuGraphMemAllocNodeGetParams(node, &allocation);
      status != CUDA_SUCCESS)
    return status;
  std::memcpy(&params.alloc, &allocation, sizeof allocation);
  params.alloc.accessDescs = nullptr;
  put(out, params, allocation.accessDescs, allocation.accessDescCount * sizeof(CUmemAccessDesc));
  return CUDA_SUCCESS;
}

CUresult encodeCopy(const Thread& thread, CUgraphNode node, CUgraphNodeParams& params,
                    wire::Encoder& out) {
  CUDA_MEMCPY3D& copy = params.memcpy.copyParams;
  if (const CUresult status = thread.driver.cuGraphMemcpyNodeGetParams(node, &copy);
      status != CUDA_SUCCESS)
    return status;
  hide(thread, copy.srcArray);
  hide(thread, copy.dstArray);
  put(out, params);
  return CUDA_SUCCESS;
}

CUresult encodeOperations(const Thread& thread, CUgraphNode node, CUgraphNodeParams& params,
                          wire::Encoder& out) {
  CUDA_BATCH_MEM_OP_NODE_PARAMS operations{};
  if (thread.driver.cuGraphBatchMemOpNodeGetParams == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (const CUresult status = thread.driver.cuGraphBatchMemOpNodeGetParams(node, &operations);
      status != CUDA_SUCCESS)
    return status;
  std::memcpy(&params.memOp, &operations, sizeof operations);
  hide(thread, params.memOp.ctx);
  params.memOp.paramArray = nullptr;
  put(out, params, operations.paramArray, operations.count * sizeof *operations.paramArray);
  return CUDA_SUCCESS;
}

}  // namespace

void NodeParams::decode(wire::Decoder& in) {
  params_ = in.get<CUgraphNodeParams>();
  const auto content = in.getBytes(wire::kMaxFrameBytes);
  content_.assign(content.begin(), content.end());
}

CUresult NodeParams::resolve(Thread& thread) {
  switch (params_.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return resolveKernel(thread);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return resolveCopy(thread);
    case CU_GRAPH_NODE_TYPE_MEMSET: return findAny(thread, params_.memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
      params_.host.userData = HostFunctions::instance().argumentFor(
          thread.session, reinterpret_cast<std::uint64_t>(params_.host.fn),
          reinterpret_cast<std::uint64_t>(params_.host.userData));
      params_.host.fn = runInClient;
      return params_.host.userData != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      // A graph that moves into its parent would need a new owner.
      if (params_.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
        return CUDA_ERROR_NOT_SUPPORTED;
      return findIn(thread, params_.graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return findIn(thread, params_.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return findIn(thread, params_.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return resolveAllocation();
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return resolveOperations(thread);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      // The reply has a handle for each body.
      if (params_.conditional.size > wire::kElementsAtOnce) return CUDA_ERROR_NOT_SUPPORTED;
      params_.conditional.phGraph_out = nullptr;
      return findAny(thread, params_.conditional.ctx);
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult NodeParams::resolveKernel(Thread& thread) {
  auto& kernel = params_.kernel;
  if (content_.size() > wire::kMaxParameterBytes) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t handle =
      kernel.func != nullptr ? (std::uint64_t)kernel.func : (std::uint64_t)kernel.kern;
  CUfunction function = nullptr;
  if (const CUresult status = thread.find<CUfunction>(handle, &function); status != CUDA_SUCCESS)
    return status;
  if (kernel.func != nullptr)
    kernel.func = function, kernel.kern = nullptr;
  else
    kernel.kern = reinterpret_cast<CUkernel>(function);
  if (const CUresult status = findAny(thread, kernel.ctx); status != CUDA_SUCCESS) return status;
  passParameters(thread, function);
  return thread.localMemoryFits(handle, function, kernel.ctx) && thread.codeFits()
             ? CUDA_SUCCESS
             : CUDA_ERROR_OUT_OF_MEMORY;
}

/// A cooperative node must not have its parameters in one buffer, and any node may become
/// cooperative. The driver judges a buffer that does not fit.
void NodeParams::passParameters(const Thread& thread, CUfunction function) {
  auto& kernel = params_.kernel;
  pointers_ = pointersInto(thread, function, content_);
  bytes_ = content_.size();
  extra_ = {CU_LAUNCH_PARAM_BUFFER_POINTER, content_.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes_,
            CU_LAUNCH_PARAM_END};
  kernel.kernelParams = pointers_ ? pointers_->data() : nullptr;
  kernel.extra = pointers_ ? nullptr : extra_.data();
}

CUresult NodeParams::resolveCopy(const Thread& thread) {
  if (const CUresult status = findAny(thread, params_.memcpy.copyCtx); status != CUDA_SUCCESS)
    return status;
  return resolveOperands(thread, params_.memcpy.copyParams);
}

/// Only memory of a GPU, as for pools: the quota does not cover other memory.
CUresult NodeParams::resolveAllocation() {
  auto& allocation = params_.alloc;
  const CUmemPoolProps& given = allocation.poolProps;
  if (content_.size() % sizeof(CUmemAccessDesc) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (given.handleTypes != CU_MEM_HANDLE_TYPE_NONE || given.usage != 0 ||
      given.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      given.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_NOT_SUPPORTED;
  CUmemPoolProps properties{};
  properties.allocType = given.allocType;
  properties.location = given.location;
  properties.maxSize = given.maxSize;
  allocation.poolProps = properties;
  const auto* descriptions = reinterpret_cast<const CUmemAccessDesc*>(content_.data());
  allocation.accessDescCount = content_.size() / sizeof(CUmemAccessDesc);
  allocation.accessDescs = allocation.accessDescCount == 0 ? nullptr : descriptions;
  for (std::size_t i = 0; i < allocation.accessDescCount; ++i) {
    if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult NodeParams::resolveOperations(const Thread& thread) {
  auto& operations = params_.memOp;
  if (content_.size() != operations.count * sizeof(CUstreamBatchMemOpParams))
    return CUDA_ERROR_INVALID_VALUE;
  operations.paramArray = reinterpret_cast<CUstreamBatchMemOpParams*>(content_.data());
  if (const CUresult status = checkOperations(thread, {operations.paramArray, operations.count});
      status != CUDA_SUCCESS)
    return status;
  return findAny(thread, operations.ctx);
}

CUresult encodeNodeParams(Thread& thread, CUgraphNode node, CUgraphNodeType type,
                          wire::Encoder& out) {
  CUgraphNodeParams params{};
  params.type = type;
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return encodeKernel(thread, node, params, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return encodeCopy(thread, node, params, out);
    case CU_GRAPH_NODE_TYPE_HOST: return encodeHost(thread, node, params, out);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return encodeAllocation(thread, node, params, out);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return encodeOperations(thread, node, params, out);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace worker
