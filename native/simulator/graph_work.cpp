// The work of each type of node, and checks of its parameters.
#include "native/simulator/graph_work.h"

#include <array>
#include <atomic>
#include <utility>

#include "native/simulator/context.h"
#include "native/simulator/copy.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/event.h"
#include "native/simulator/graph_memory.h"
#include "native/simulator/handles.h"
#include "native/simulator/memset.h"

namespace simulator {
namespace {

/// In the order of Work.
constexpr std::array kTypes{
    CU_GRAPH_NODE_TYPE_KERNEL,     CU_GRAPH_NODE_TYPE_MEMCPY,       CU_GRAPH_NODE_TYPE_MEMSET,
    CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_EMPTY,
    CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
    CU_GRAPH_NODE_TYPE_MEM_FREE,   CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_CONDITIONAL};
static_assert(kTypes.size() == std::variant_size_v<Work>);

CUresult makeKernel(const CUDA_KERNEL_NODE_PARAMS_v3& given, Work& work) {
  Context* context = nullptr;
  CUresult status = contextOf(given.ctx, context);
  if (status != CUDA_SUCCESS) return status;
  KernelWork kernel;
  kernel.func = given.func;
  kernel.kern = given.func == nullptr ? given.kern : nullptr;
  const auto handle = given.func != nullptr ? given.func : reinterpret_cast<CUfunction>(given.kern);
  status = findFunction(*context, handle, kernel.function);
  if (status != CUDA_SUCCESS) return status;
  kernel.request.grid = {given.gridDimX, given.gridDimY, given.gridDimZ};
  kernel.request.block = {given.blockDimX, given.blockDimY, given.blockDimZ};
  kernel.request.dynamicShared = given.sharedMemBytes;
  kernel.packed = given.extra != nullptr;
  status = check(*kernel.function, kernel.request);
  if (status == CUDA_SUCCESS)
    status =
        readParameters(kernel.function->info, given.kernelParams, given.extra, kernel.parameters);
  if (status == CUDA_SUCCESS) work = std::move(kernel);
  return status;
}

CUresult makeCopy(const CUDA_MEMCPY_NODE_PARAMS& given, Work& work) {
  CopyWork copying{given.copyParams, nullptr};
  CUresult status = contextOf(given.copyCtx, copying.context);
  Copy copy;
  if (status == CUDA_SUCCESS) status = describe(copying.parameters, copy);
  if (status == CUDA_SUCCESS) status = check(copy);
  if (status == CUDA_SUCCESS) work = copying;
  return status;
}

CUresult makeMemset(const CUDA_MEMSET_NODE_PARAMS_v2& given, Work& work) {
  MemsetWork filling{
      {given.dst, given.pitch, given.value, given.elementSize, given.width, given.height}, nullptr};
  CUresult status = contextOf(given.ctx, filling.context);
  if (status == CUDA_SUCCESS) status = check(filling.parameters);
  if (status == CUDA_SUCCESS) work = filling;
  return status;
}

template <class EventWork>
CUresult makeEvent(CUevent handle, Work& work) {
  const auto event = Handles<Event>::all().find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  work = EventWork{event};
  return CUDA_SUCCESS;
}

CUresult makeAllocate(const CUDA_MEM_ALLOC_NODE_PARAMS_v2& given, Work& work) {
  AllocateWork allocating;
  allocating.parameters = {given.poolProps, nullptr, given.accessDescCount, given.bytesize, 0};
  if (given.accessDescCount > 0) {
    if (given.accessDescs == nullptr) return CUDA_ERROR_INVALID_VALUE;
    allocating.access.assign(given.accessDescs, given.accessDescs + given.accessDescCount);
  }
  const CUresult status = reserve(allocating.parameters, allocating.access, allocating.memory);
  if (status != CUDA_SUCCESS) return status;
  allocating.parameters.dptr = allocating.memory->address;
  work = std::move(allocating);
  return CUDA_SUCCESS;
}

CUresult makeFree(CUdeviceptr dptr, Work& work) {
  FreeWork freeing{findGraphMemory(dptr)};
  if (freeing.memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  work = std::move(freeing);
  return CUDA_SUCCESS;
}

CUresult makeOperations(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2& given, Work& work) {
  if (given.paramArray == nullptr || given.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  OperationsWork batch{{given.paramArray, given.paramArray + given.count}, nullptr, given.flags};
  CUresult status = contextOf(given.ctx, batch.context);
  if (status == CUDA_SUCCESS) status = check(batch.operations);
  if (status == CUDA_SUCCESS) work = std::move(batch);
  return status;
}

struct Runnable {
  std::function<void()> operator()(const KernelWork& kernel) const {
    return [kernel, request = kernel.effective()] {
      run(*kernel.function, request, kernel.parameters);
    };
  }
  std::function<void()> operator()(const CopyWork& copying) const {
    Copy copy;
    if (describe(copying.parameters, copy) != CUDA_SUCCESS) return {};
    return [copy = prepared(copy)] { run(copy); };
  }
  std::function<void()> operator()(const MemsetWork& filling) const {
    return [memset = prepared(filling.parameters)] { run(memset); };
  }
  std::function<void()> operator()(const HostWork& host) const {
    return [parameters = host.parameters] {
      const HostFunctionScope scope;
      parameters.fn(parameters.userData);
    };
  }
  std::function<void()> operator()(const AllocateWork& allocating) const {
    return [memory = allocating.memory] { memory->setAccessible(true); };
  }
  std::function<void()> operator()(const FreeWork& freeing) const {
    return [memory = freeing.memory] { memory->setAccessible(false); };
  }
  std::function<void()> operator()(const OperationsWork& batch) const {
    return [operations = prepared(batch.operations)] { run(operations); };
  }
  template <class Other>
  std::function<void()> operator()(const Other&) const {
    return {};
  }
};

}  // namespace

LaunchRequest KernelWork::effective() const {
  LaunchRequest launch = request;
  for (const auto& [id, value] : attributes)
    apply(static_cast<CUlaunchAttributeID>(id), value, launch);
  return launch;
}

CUgraphNodeType typeOf(const Work& work) { return kTypes[work.index()]; }

std::span<const std::shared_ptr<Graph>> graphsIn(const Work& work) {
  if (const auto* child = std::get_if<ChildWork>(&work)) return {&child->graph, 1};
  const auto* conditional = std::get_if<ConditionalWork>(&work);
  if (conditional == nullptr) return {};
  return conditional->bodies;
}

CUresult contextOf(CUcontext handle, Context*& context) {
  return handle == nullptr ? currentContext(context) : findContext(handle, context);
}

CUresult makeWork(const CUgraphNodeParams& parameters, Work& work) {
  switch (parameters.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return makeKernel(parameters.kernel, work);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return makeCopy(parameters.memcpy, work);
    case CU_GRAPH_NODE_TYPE_MEMSET: return makeMemset(parameters.memset, work);
    case CU_GRAPH_NODE_TYPE_HOST:
      if (parameters.host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
      work = HostWork{{parameters.host.fn, parameters.host.userData}};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EMPTY: work = EmptyWork{}; return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return makeEvent<WaitWork>(parameters.eventWait.event, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return makeEvent<RecordWork>(parameters.eventRecord.event, work);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return makeAllocate(parameters.alloc, work);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return makeFree(parameters.free.dptr, work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return makeOperations(parameters.memOp, work);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult replaceWork(Work& work, Work made) {
  if (work.index() != made.index()) return CUDA_ERROR_INVALID_VALUE;
  if (auto* kernel = std::get_if<KernelWork>(&made))
    kernel->attributes = std::get<KernelWork>(work).attributes;
  if (auto* copying = std::get_if<CopyWork>(&made))
    copying->context = std::get<CopyWork>(work).context;
  if (auto* filling = std::get_if<MemsetWork>(&made))
    filling->context = std::get<MemsetWork>(work).context;
  work = std::move(made);
  return CUDA_SUCCESS;
}

std::function<void()> runnable(const Work& work) { return std::visit(Runnable{}, work); }

CUresult checkWork(const Work& work) {
  const auto* kernel = std::get_if<KernelWork>(&work);
  return kernel == nullptr ? CUDA_SUCCESS : check(*kernel->function, kernel->effective());
}

}  // namespace simulator
