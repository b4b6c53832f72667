// Copies of rows: cuMemcpy2D and its family. Arrays do not exist yet.
#include <limits>

#include "native/simulator/copy_submission.h"
#include "native/simulator/driver_call.h"

using namespace simulator;

namespace {

struct Plane {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  std::size_t x, y, pitch;
};

/// The address of the first byte and the kind of memory; arrays are not supported.
CUresult place(const Plane& plane, std::uint64_t& address, Side& side) {
  switch (plane.type) {
    case CU_MEMORYTYPE_HOST:
      address = reinterpret_cast<std::uint64_t>(plane.host);
      side = Side::host;
      break;
    case CU_MEMORYTYPE_DEVICE:
      address = plane.device;
      side = Side::device;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      address = plane.device;
      side = Side::any;
      break;
    case CU_MEMORYTYPE_ARRAY: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  address += plane.y * plane.pitch + plane.x;
  return CUDA_SUCCESS;
}

CUresult describe(const CUDA_MEMCPY2D* request, Copy& copy) {
  if (request == nullptr) return CUDA_ERROR_INVALID_VALUE;
  copy.width = request->WidthInBytes;
  copy.rows = request->Height;
  // A pitch of 0 means rows without gaps.
  copy.sourcePitch = request->srcPitch != 0 ? request->srcPitch : request->srcXInBytes + copy.width;
  copy.destinationPitch =
      request->dstPitch != 0 ? request->dstPitch : request->dstXInBytes + copy.width;
  if (copy.rows > 1 && (request->srcXInBytes + copy.width > copy.sourcePitch ||
                        request->dstXInBytes + copy.width > copy.destinationPitch)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::size_t pitch =
      copy.sourcePitch > copy.destinationPitch ? copy.sourcePitch : copy.destinationPitch;
  if (pitch != 0 && copy.rows > std::numeric_limits<std::size_t>::max() / 2 / pitch)
    return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = place({request->srcMemoryType, request->srcHost, request->srcDevice,
                                 request->srcXInBytes, request->srcY, copy.sourcePitch},
                                copy.source, copy.from);
  if (status != CUDA_SUCCESS) return status;
  return place({request->dstMemoryType, request->dstHost, request->dstDevice, request->dstXInBytes,
                request->dstY, copy.destinationPitch},
               copy.destination, copy.to);
}

CUresult copyRows(const CUDA_MEMCPY2D* request, CUstream hStream, bool synchronous) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    Copy copy;
    const CUresult status = describe(request, copy);
    return status == CUDA_SUCCESS ? submit(copy, stream, synchronous) : status;
  });
}

}  // namespace

DRIVER_CALL cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy) { return copyRows(pCopy, nullptr, true); }
DRIVER_CALL cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy) {
  return copyRows(pCopy, nullptr, true);
}
DRIVER_CALL cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return copyRows(pCopy, hStream, false);
}
