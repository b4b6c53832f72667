// Memory that the program maps into arrays.
#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

CUresult cuMemMapArrayAsync(CUarrayMapInfo* mapInfoList, unsigned int count, CUstream hStream) {
  const std::size_t bytes = std::size_t{count} * sizeof *mapInfoList;
  Call call;
  if (!call.begin(CallNumber::cuMemMapArrayAsync, 16 + bytes, kOrdered)) return call.status();
  if (mapInfoList == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(number(hStream));
  call.encoder().putBytes(mapInfoList, bytes);
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace interposer
