// Operations on words of memory in stream order.
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

/// An operation that is certainly valid need not be waited for. `highest`: the largest value of the
/// flags that every GPU takes.
bool valid(CUdeviceptr address, std::size_t bytes, unsigned flags, unsigned highest) {
  const Session* session = Session::current();
  return session != nullptr && address % bytes == 0 && flags <= highest &&
         session->deviceRanges.contains(address, bytes);
}

}  // namespace

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                 unsigned int flags) {
  const Waiting waiting(!valid(addr, sizeof value, flags, CU_STREAM_WRITE_VALUE_DEFAULT));
  return remote::cuStreamWriteValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                 unsigned int flags) {
  const Waiting waiting(!valid(addr, sizeof value, flags, CU_STREAM_WRITE_VALUE_DEFAULT));
  return remote::cuStreamWriteValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                unsigned int flags) {
  const Waiting waiting(!valid(addr, sizeof value, flags, CU_STREAM_WAIT_VALUE_AND));
  return remote::cuStreamWaitValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned int flags) {
  const Waiting waiting(!valid(addr, sizeof value, flags, CU_STREAM_WAIT_VALUE_AND));
  return remote::cuStreamWaitValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams* paramArray, unsigned int flags) {
  const std::size_t bytes = count * sizeof *paramArray;
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (paramArray == nullptr || bytes > wire::kMaxFrameBytes / 2) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuStreamBatchMemOp_v2, 32 + bytes, kOrdered)) return call.status();
  call.encoder().put(number(stream));
  call.encoder().putBytes(paramArray, bytes);
  call.encoder().put(flags);
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace interposer
