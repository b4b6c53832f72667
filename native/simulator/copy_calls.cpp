// Linear copies.
#include "native/simulator/copy_submission.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/stream_capture.h"

using namespace simulator;

namespace {

Copy linear(std::uint64_t destination, Side to, std::uint64_t source, Side from,
            std::size_t bytes) {
  return {destination, source, bytes, 1, bytes, bytes, to, from};
}

std::uint64_t addressOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

CUresult copySynchronously(const Copy& copy) {
  return onStream(nullptr, [&](Context&, Stream& stream) { return submit(copy, stream, true); });
}

CUresult copyAsynchronously(const Copy& copy, CUstream hStream) {
  return onStream(hStream, [&](Context&, Stream& stream) { return submit(copy, stream, false); });
}

/// Peer copies name contexts, but only the addresses determine where the bytes are.
CUresult findPeers(CUcontext destination, CUcontext source, Context* (&contexts)[2]) {
  const CUresult status = findContext(destination, contexts[0]);
  return status == CUDA_SUCCESS ? findContext(source, contexts[1]) : status;
}

}  // namespace

DRIVER_CALL cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return copySynchronously(linear(dst, Side::any, src, Side::any, ByteCount));
}

DRIVER_CALL cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return copyAsynchronously(linear(dst, Side::any, src, Side::any, ByteCount), hStream);
}

DRIVER_CALL cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return copySynchronously(
      linear(dstDevice, Side::device, addressOf(srcHost), Side::host, ByteCount));
}

DRIVER_CALL cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return copySynchronously(
      linear(addressOf(dstHost), Side::host, srcDevice, Side::device, ByteCount));
}

DRIVER_CALL cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return copySynchronously(linear(dstDevice, Side::device, srcDevice, Side::device, ByteCount));
}

DRIVER_CALL cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                                 CUstream hStream) {
  return copyAsynchronously(
      linear(dstDevice, Side::device, addressOf(srcHost), Side::host, ByteCount), hStream);
}

DRIVER_CALL cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                 CUstream hStream) {
  return copyAsynchronously(
      linear(addressOf(dstHost), Side::host, srcDevice, Side::device, ByteCount), hStream);
}

DRIVER_CALL cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                 CUstream hStream) {
  return copyAsynchronously(linear(dstDevice, Side::device, srcDevice, Side::device, ByteCount),
                            hStream);
}

// Follows all earlier work of the three contexts involved, and precedes all later work in them.
DRIVER_CALL cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                         CUcontext srcContext, size_t ByteCount) {
  return onStream(nullptr, [&](Context&, Stream& stream) -> CUresult {
    Context* peers[2];
    const CUresult status = findPeers(dstContext, srcContext, peers);
    if (status != CUDA_SUCCESS) return status;
    const CUresult waits = refusedInCapture(stream);
    if (waits != CUDA_SUCCESS) return waits;
    for (Context* peer : peers) synchronize(*peer);
    const CUresult submitted =
        submit(linear(dstDevice, Side::device, srcDevice, Side::device, ByteCount), stream, true);
    if (submitted != CUDA_SUCCESS) return submitted;
    stream.synchronize();
    return fault();
  });
}

DRIVER_CALL cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                              CUcontext srcContext, size_t ByteCount, CUstream hStream) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    Context* peers[2];
    const CUresult status = findPeers(dstContext, srcContext, peers);
    return status == CUDA_SUCCESS
               ? submit(linear(dstDevice, Side::device, srcDevice, Side::device, ByteCount), stream,
                        false)
               : status;
  });
}
