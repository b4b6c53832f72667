// Copies that a struct describes: cuMemcpy2D, cuMemcpy3D, cuMemcpy3DPeer and their families.
#include "native/simulator/copy_submission.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/stream_capture.h"

using namespace simulator;

namespace {

CUresult copyVolume(const CUDA_MEMCPY3D& request, CUstream hStream, bool synchronous) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    Copy copy;
    const CUresult status = describe(request, copy);
    return status == CUDA_SUCCESS ? submit(copy, stream, synchronous) : status;
  });
}

/// Converts to a copy with one layer.
CUDA_MEMCPY3D volumeOf(const CUDA_MEMCPY2D& plane) {
  CUDA_MEMCPY3D volume{};
  volume.srcXInBytes = plane.srcXInBytes;
  volume.srcY = plane.srcY;
  volume.srcMemoryType = plane.srcMemoryType;
  volume.srcHost = plane.srcHost;
  volume.srcDevice = plane.srcDevice;
  volume.srcArray = plane.srcArray;
  volume.srcPitch = plane.srcPitch;
  volume.dstXInBytes = plane.dstXInBytes;
  volume.dstY = plane.dstY;
  volume.dstMemoryType = plane.dstMemoryType;
  volume.dstHost = plane.dstHost;
  volume.dstDevice = plane.dstDevice;
  volume.dstArray = plane.dstArray;
  volume.dstPitch = plane.dstPitch;
  volume.WidthInBytes = plane.WidthInBytes;
  volume.Height = plane.Height;
  volume.Depth = 1;
  return volume;
}

CUresult copyPlane(const CUDA_MEMCPY2D* pCopy, CUstream hStream, bool synchronous) {
  return pCopy == nullptr ? CUDA_ERROR_INVALID_VALUE
                          : copyVolume(volumeOf(*pCopy), hStream, synchronous);
}

/// Drops the contexts of both sides.
CUDA_MEMCPY3D volumeOf(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D volume{};
  volume.srcXInBytes = peer.srcXInBytes;
  volume.srcY = peer.srcY;
  volume.srcZ = peer.srcZ;
  volume.srcLOD = peer.srcLOD;
  volume.srcMemoryType = peer.srcMemoryType;
  volume.srcHost = peer.srcHost;
  volume.srcDevice = peer.srcDevice;
  volume.srcArray = peer.srcArray;
  volume.srcPitch = peer.srcPitch;
  volume.srcHeight = peer.srcHeight;
  volume.dstXInBytes = peer.dstXInBytes;
  volume.dstY = peer.dstY;
  volume.dstZ = peer.dstZ;
  volume.dstLOD = peer.dstLOD;
  volume.dstMemoryType = peer.dstMemoryType;
  volume.dstHost = peer.dstHost;
  volume.dstDevice = peer.dstDevice;
  volume.dstArray = peer.dstArray;
  volume.dstPitch = peer.dstPitch;
  volume.dstHeight = peer.dstHeight;
  volume.WidthInBytes = peer.WidthInBytes;
  volume.Height = peer.Height;
  volume.Depth = peer.Depth;
  return volume;
}

/// The context of one side. Only device memory has one that the program names; null: none.
CUresult peerOf(CUmemorytype type, CUcontext handle, Context*& context) {
  context = nullptr;
  return type == CU_MEMORYTYPE_DEVICE ? findContext(handle, context) : CUDA_SUCCESS;
}

CUresult copyPeers(const CUDA_MEMCPY3D_PEER& request, CUstream hStream, bool synchronous) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    Context* peers[2];
    CUresult status = peerOf(request.dstMemoryType, request.dstContext, peers[0]);
    if (status == CUDA_SUCCESS)
      status = peerOf(request.srcMemoryType, request.srcContext, peers[1]);
    Copy copy;
    if (status == CUDA_SUCCESS) status = describe(volumeOf(request), copy);
    if (status != CUDA_SUCCESS || !synchronous)
      return status == CUDA_SUCCESS ? submit(copy, stream, false) : status;
    // Like cuMemcpyPeer, follows the earlier work of both contexts and precedes their later work.
    status = refusedInCapture(stream);
    if (status != CUDA_SUCCESS) return status;
    for (Context* peer : peers) {
      if (peer != nullptr) synchronize(*peer);
    }
    status = submit(copy, stream, true);
    if (status != CUDA_SUCCESS) return status;
    stream.synchronize();
    return fault();
  });
}

}  // namespace

DRIVER_CALL cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy) { return copyPlane(pCopy, nullptr, true); }
DRIVER_CALL cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy) {
  return copyPlane(pCopy, nullptr, true);
}
DRIVER_CALL cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return copyPlane(pCopy, hStream, false);
}

DRIVER_CALL cuMemcpy3D_v2(const CUDA_MEMCPY3D* pCopy) {
  return pCopy == nullptr ? CUDA_ERROR_INVALID_VALUE : copyVolume(*pCopy, nullptr, true);
}
DRIVER_CALL cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return pCopy == nullptr ? CUDA_ERROR_INVALID_VALUE : copyVolume(*pCopy, hStream, false);
}

DRIVER_CALL cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* pCopy) {
  return pCopy == nullptr ? CUDA_ERROR_INVALID_VALUE : copyPeers(*pCopy, nullptr, true);
}
DRIVER_CALL cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* pCopy, CUstream hStream) {
  return pCopy == nullptr ? CUDA_ERROR_INVALID_VALUE : copyPeers(*pCopy, hStream, false);
}
