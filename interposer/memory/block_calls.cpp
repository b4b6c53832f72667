// Calls that copy rows, layers of rows, or parts of arrays: all of them are copies of a block.
#include <bit>

#include "interposer/memory/block_copy.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

CUDA_MEMCPY3D blockOf(const CUDA_MEMCPY3D& given) {
  CUDA_MEMCPY3D copy = given;
  copy.reserved0 = copy.reserved1 = nullptr;
  return copy;
}

CUDA_MEMCPY3D blockOf(const CUDA_MEMCPY2D& rows) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = rows.srcXInBytes, copy.srcY = rows.srcY;
  copy.srcMemoryType = rows.srcMemoryType, copy.srcHost = rows.srcHost;
  copy.srcDevice = rows.srcDevice, copy.srcArray = rows.srcArray, copy.srcPitch = rows.srcPitch;
  copy.dstXInBytes = rows.dstXInBytes, copy.dstY = rows.dstY;
  copy.dstMemoryType = rows.dstMemoryType, copy.dstHost = rows.dstHost;
  copy.dstDevice = rows.dstDevice, copy.dstArray = rows.dstArray, copy.dstPitch = rows.dstPitch;
  copy.WidthInBytes = rows.WidthInBytes, copy.Height = rows.Height, copy.Depth = 1;
  return copy;
}

/// The contexts are where CUDA_MEMCPY3D has reserved fields.
CUDA_MEMCPY3D blockOf(const CUDA_MEMCPY3D_PEER& copy) { return std::bit_cast<CUDA_MEMCPY3D>(copy); }

template <class Given>
CUresult copyGiven(const Given* given, const Run& run) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  return given == nullptr ? CUDA_ERROR_INVALID_VALUE : copyBlock(blockOf(*given), run);
}

/// A row of bytes; the ends are set by from() and to().
CUDA_MEMCPY3D row(std::size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY3D from(CUarray array, std::size_t offset, CUDA_MEMCPY3D copy) {
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = array, copy.srcXInBytes = offset;
  return copy;
}

CUDA_MEMCPY3D from(CUdeviceptr device, CUDA_MEMCPY3D copy) {
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = device;
  return copy;
}

CUDA_MEMCPY3D from(const void* host, CUDA_MEMCPY3D copy) {
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = host;
  return copy;
}

CUDA_MEMCPY3D to(CUarray array, std::size_t offset, CUDA_MEMCPY3D copy) {
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array, copy.dstXInBytes = offset;
  return copy;
}

CUDA_MEMCPY3D to(CUdeviceptr device, CUDA_MEMCPY3D copy) {
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = device;
  return copy;
}

CUDA_MEMCPY3D to(void* host, CUDA_MEMCPY3D copy) {
  copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = host;
  return copy;
}

}  // namespace

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy, CUstream defaultStream) {
  return copyGiven(pCopy, {defaultStream, true});
}

/// Copies of blocks do not require pitches that cuMemAllocPitch gives.
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy, CUstream defaultStream) {
  return copyGiven(pCopy, {defaultStream, true});
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return copyGiven(pCopy, {hStream, false});
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* pCopy, CUstream defaultStream) {
  return copyGiven(pCopy, {defaultStream, true});
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return copyGiven(pCopy, {hStream, false});
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* pCopy, CUstream defaultStream) {
  return copyGiven(pCopy, {defaultStream, true, true});
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* pCopy, CUstream hStream) {
  return copyGiven(pCopy, {hStream, false, true});
}

// Bytes of a one-dimensional array.

CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                         size_t ByteCount, CUstream defaultStream) {
  return copyBlock(to(dstArray, dstOffset, from(srcDevice, row(ByteCount))), {defaultStream, true});
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                         size_t ByteCount, CUstream defaultStream) {
  return copyBlock(to(dstDevice, from(srcArray, srcOffset, row(ByteCount))), {defaultStream, true});
}

CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount,
                         CUstream defaultStream) {
  return copyBlock(to(dstArray, dstOffset, from(srcHost, row(ByteCount))), {defaultStream, true});
}

CUresult cuMemcpyAtoH_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                         CUstream defaultStream) {
  return copyBlock(to(dstHost, from(srcArray, srcOffset, row(ByteCount))), {defaultStream, true});
}

CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                         size_t ByteCount, CUstream defaultStream) {
  return copyBlock(to(dstArray, dstOffset, from(srcArray, srcOffset, row(ByteCount))),
                   {defaultStream, true});
}

CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void* srcHost,
                              size_t ByteCount, CUstream hStream) {
  return copyBlock(to(dstArray, dstOffset, from(srcHost, row(ByteCount))), {hStream, false});
}

CUresult cuMemcpyAtoHAsync_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                              CUstream hStream) {
  return copyBlock(to(dstHost, from(srcArray, srcOffset, row(ByteCount))), {hStream, false});
}

}  // namespace interposer
