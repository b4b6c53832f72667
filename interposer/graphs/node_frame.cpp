#include "interposer/graphs/node_frame.h"

#include "interposer/code/parameters.h"
#include "interposer/contexts/contexts.h"
#include "interposer/memory/managed_memory.h"
#include "interposer/session/call.h"

namespace interposer {

namespace {

template <class T>
CUresult copyArray(std::vector<std::byte>& to, const T* array, std::size_t count) {
  if (array == nullptr && count > 0) return CUDA_ERROR_INVALID_VALUE;
  if (count > wire::kMaxFrameBytes / sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
  const auto* bytes = reinterpret_cast<const std::byte*>(array);
  to.assign(bytes, bytes + count * sizeof(T));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult NodeFrame::read(const CUgraphNodeParams& given) {
  params_ = given;
  switch (given.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return readKernel();
    case CU_GRAPH_NODE_TYPE_HOST:
      return given.host.fn == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      params_.alloc.accessDescs = nullptr;
      return copyArray(content_, given.alloc.accessDescs, given.alloc.accessDescCount);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      params_.memOp.paramArray = nullptr;
      if (const CUresult status = copyArray(content_, given.memOp.paramArray, given.memOp.count);
          status != CUDA_SUCCESS)
        return status;
      return usesManagedWord({given.memOp.paramArray, given.memOp.count}) ? CUDA_ERROR_INVALID_VALUE
                                                                          : CUDA_SUCCESS;
    default: return CUDA_SUCCESS;
  }
}

CUresult NodeFrame::readKernel() {
  auto& kernel = params_.kernel;
  Kernel* const found = kernel.func != nullptr ? findKernel(kernel.func) : findKernel(kernel.kern);
  if (found == nullptr)
    return kernel.func == nullptr && kernel.kern == nullptr ? CUDA_ERROR_INVALID_VALUE
                                                            : unknownHandle();
  Parameters parameters;
  if (const CUresult status = readParameters(*found, kernel.kernelParams, kernel.extra, parameters);
      status != CUDA_SUCCESS)
    return status;
  content_.resize(parameters.bytes);
  copyParameters(content_.data(), parameters);
  kernel.kernelParams = kernel.extra = nullptr;
  return CUDA_SUCCESS;
}

}  // namespace interposer
