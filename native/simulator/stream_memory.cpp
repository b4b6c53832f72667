// Calls that write words of memory, or wait for their values, in stream order.
#include <algorithm>

#include "native/simulator/driver_call.h"
#include "native/simulator/memory_operations.h"
#include "native/simulator/stream_capture.h"

using namespace simulator;

namespace {

bool waits(const MemoryOperations& operations) {
  return std::any_of(operations.begin(), operations.end(), [](const auto& one) {
    return one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
           one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  });
}

CUresult submit(CUstream hStream, MemoryOperations operations) {
  return onStream(hStream, [&](Context& context, Stream& stream) -> CUresult {
    const CUresult status = check(operations);
    if (status != CUDA_SUCCESS) return status;
    const auto node = captured(stream, [&](Work& work) {
      work = OperationsWork{operations, &context, 0};
      return CUDA_SUCCESS;
    });
    if (node) return *node;
    const bool mayWait = waits(operations);
    const auto work = [operations = prepared(operations)] { run(operations); };
    if (mayWait || !stream.performNow(work)) stream.submit(work);
    return CUDA_SUCCESS;
  });
}

CUstreamBatchMemOpParams wait(CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value,
                              unsigned flags) {
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = type;
  operation.waitValue.address = address;
  operation.waitValue.value64 = value;
  operation.waitValue.flags = flags;
  return operation;
}

CUstreamBatchMemOpParams write(CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value,
                               unsigned flags) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = type;
  operation.writeValue.address = address;
  operation.writeValue.value64 = value;
  operation.writeValue.flags = flags;
  return operation;
}

}  // namespace

DRIVER_CALL cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                    unsigned int flags) {
  return submit(stream, {write(CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags)});
}
DRIVER_CALL cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                    unsigned int flags) {
  return submit(stream, {write(CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags)});
}

DRIVER_CALL cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                   unsigned int flags) {
  return submit(stream, {wait(CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags)});
}
DRIVER_CALL cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                   unsigned int flags) {
  return submit(stream, {wait(CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags)});
}

DRIVER_CALL cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                                  CUstreamBatchMemOpParams* paramArray, unsigned int flags) {
  if (paramArray == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, {paramArray, paramArray + count});
}
