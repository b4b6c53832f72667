// Operations on words of memory in stream order. Each call waits for the answer: the driver refuses
// words of pools, for example, and only the worker knows.
#include <algorithm>
#include <span>

#include "interposer/memory/managed_memory.h"
#include "interposer/memory/managed_ranges.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

bool usesManagedWord(std::span<const CUstreamBatchMemOpParams> operations) {
  return std::any_of(operations.begin(), operations.end(), [](const auto& operation) {
    switch (operation.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64: return isManaged(operation.waitValue.address);
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64: return isManaged(operation.writeValue.address);
      default: return false;
    }
  });
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                 unsigned int flags) {
  if (isManaged(addr)) return CUDA_ERROR_INVALID_VALUE;
  const Waiting waiting;
  return remote::cuStreamWriteValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                 unsigned int flags) {
  if (isManaged(addr)) return CUDA_ERROR_INVALID_VALUE;
  const Waiting waiting;
  return remote::cuStreamWriteValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                unsigned int flags) {
  if (isManaged(addr)) return CUDA_ERROR_INVALID_VALUE;
  const Waiting waiting;
  return remote::cuStreamWaitValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned int flags) {
  if (isManaged(addr)) return CUDA_ERROR_INVALID_VALUE;
  const Waiting waiting;
  return remote::cuStreamWaitValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams* paramArray, unsigned int flags) {
  const std::size_t bytes = count * sizeof *paramArray;
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (paramArray == nullptr || bytes > wire::kMaxFrameBytes / 2) return CUDA_ERROR_INVALID_VALUE;
  if (usesManagedWord({paramArray, count})) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuStreamBatchMemOp_v2, 32 + bytes, kOrdered)) return call.status();
  call.encoder().put(number(stream));
  call.encoder().putBytes(paramArray, bytes);
  call.encoder().put(flags);
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace interposer
