// Operations on words of memory in stream order. A stream that waits for a value is busy, as one
// that waits for a host function: the gate charges it, and the drain of a window does not wait for
// its end.
#include <algorithm>
#include <vector>

#include "native/worker/calls/memory_operation.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Whether the word is memory of a GPU, or shared with the client. Other memory of the host that
/// the driver knows is the worker's own. The driver's pools have no such words (recorded).
bool mayAccess(const Thread& thread, CUdeviceptr address, std::size_t bytes) {
  CUmemorytype type{};
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* answer = &type;
  if (thread.driver.cuPointerGetAttributes(1, &attribute, &answer, address) != CUDA_SUCCESS)
    return false;
  if (type == CU_MEMORYTYPE_DEVICE) return !thread.session.memory.pools().find(address);
  return thread.session.shared.contains(address, bytes);
}

CUresult checkOperation(const Thread& thread, const CUstreamBatchMemOpParams& operation) {
  const auto checked = [&](CUdeviceptr address, std::size_t bytes) {
    return mayAccess(thread, address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32: return checked(operation.waitValue.address, 4);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: return checked(operation.waitValue.address, 8);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: return checked(operation.writeValue.address, 4);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return checked(operation.writeValue.address, 8);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/// Calls the driver if it has the function and the word may be accessed.
template <class Function, class Value>
CUresult onWord(Thread& thread, Function function, CUstream stream, CUdeviceptr address,
                Value value, unsigned flags) {
  if (function == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (!mayAccess(thread, address, sizeof value)) return CUDA_ERROR_INVALID_VALUE;
  return function(stream, address, value, flags);
}

}  // namespace

CUresult checkOperations(const Thread& thread,
                         std::span<const CUstreamBatchMemOpParams> operations) {
  for (const CUstreamBatchMemOpParams& operation : operations) {
    if (const CUresult status = checkOperation(thread, operation); status != CUDA_SUCCESS)
      return status;
  }
  return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue32_v2(Thread& thread, CUstream stream, CUdeviceptr addr,
                                 cuuint32_t value, unsigned int flags) {
  return onWord(thread, thread.driver.cuStreamWriteValue32_v2, stream, addr, value, flags);
}

CUresult cuStreamWriteValue64_v2(Thread& thread, CUstream stream, CUdeviceptr addr,
                                 cuuint64_t value, unsigned int flags) {
  return onWord(thread, thread.driver.cuStreamWriteValue64_v2, stream, addr, value, flags);
}

CUresult cuStreamWaitValue32_v2(Thread& thread, CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                unsigned int flags) {
  return onWord(thread, thread.driver.cuStreamWaitValue32_v2, stream, addr, value, flags);
}

CUresult cuStreamWaitValue64_v2(Thread& thread, CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned int flags) {
  return onWord(thread, thread.driver.cuStreamWaitValue64_v2, stream, addr, value, flags);
}

CUresult cuStreamBatchMemOp_v2(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  const auto handle = in.get<std::uint64_t>();
  const auto given = in.getArray<CUstreamBatchMemOpParams>(wire::kMaxFrameBytes);
  const auto flags = in.get<unsigned>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuStreamBatchMemOp_v2 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  std::vector<CUstreamBatchMemOpParams> operations(given.begin(), given.end());
  if (const CUresult status = checkOperations(thread, operations); status != CUDA_SUCCESS)
    return status;
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUstream>(handle, &stream); status != CUDA_SUCCESS)
    return status;
  thread.awaitWindow(window, stream, 0, {});
  return thread.driver.cuStreamBatchMemOp_v2(stream, static_cast<unsigned>(operations.size()),
                                             operations.data(), flags);
}

}  // namespace worker
