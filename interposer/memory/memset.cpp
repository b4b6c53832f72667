// The plain forms run on the default stream. As natively, they return at once if the memory is the
// device's, and when they have ended if it is pinned or managed memory, which the host may read.
#include "interposer/memory/host_memory.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

/// A memset that is certainly valid need not be waited for. Elements must be aligned to their size.
bool valid(CUdeviceptr address, std::size_t bytes, std::size_t elementBytes) {
  const Session* session = Session::current();
  return session != nullptr && address % elementBytes == 0 &&
         (bytes == 0 || session->deviceRanges.contains(address, bytes));
}

std::size_t extent(std::size_t pitch, std::size_t widthBytes, std::size_t height) {
  return height == 0 ? 0 : pitch * (height - 1) + widthBytes;
}

/// What a plain memset returns after its asynchronous form has returned `status`.
CUresult settled(CUdeviceptr address, CUstream stream, CUresult status) {
  if (status != CUDA_SUCCESS || !findHostRange(address)) return status;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult known = interposer::cuStreamIsCapturing(stream, &capture);
  if (known != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_NONE) return status;
  return interposer::cuStreamSynchronize(stream);
}

}  // namespace

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  const Waiting waiting(!valid(dstDevice, N, 1));
  return remote::cuMemsetD8Async(dstDevice, uc, N, hStream);
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  const Waiting waiting(!valid(dstDevice, N * 2, 2));
  return remote::cuMemsetD16Async(dstDevice, us, N, hStream);
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  const Waiting waiting(!valid(dstDevice, N * 4, 4));
  return remote::cuMemsetD32Async(dstDevice, ui, N, hStream);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                           size_t Height, CUstream hStream) {
  const Waiting waiting(dstPitch < Width || !valid(dstDevice, extent(dstPitch, Width, Height), 1));
  return remote::cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, hStream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                            size_t Height, CUstream hStream) {
  const Waiting waiting(dstPitch < Width * 2 ||
                        !valid(dstDevice, extent(dstPitch, Width * 2, Height), 2));
  return remote::cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, hStream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                            size_t Height, CUstream hStream) {
  const Waiting waiting(dstPitch < Width * 4 ||
                        !valid(dstDevice, extent(dstPitch, Width * 4, Height), 4));
  return remote::cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, hStream);
}

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream defaultStream) {
  return settled(dstDevice, defaultStream,
                 interposer::cuMemsetD8Async(dstDevice, uc, N, defaultStream));
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N,
                        CUstream defaultStream) {
  return settled(dstDevice, defaultStream,
                 interposer::cuMemsetD16Async(dstDevice, us, N, defaultStream));
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream defaultStream) {
  return settled(dstDevice, defaultStream,
                 interposer::cuMemsetD32Async(dstDevice, ui, N, defaultStream));
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                         size_t Height, CUstream defaultStream) {
  return settled(
      dstDevice, defaultStream,
      interposer::cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, defaultStream));
}

CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                          size_t Height, CUstream defaultStream) {
  return settled(
      dstDevice, defaultStream,
      interposer::cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, defaultStream));
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                          size_t Height, CUstream defaultStream) {
  return settled(
      dstDevice, defaultStream,
      interposer::cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, defaultStream));
}

}  // namespace interposer
