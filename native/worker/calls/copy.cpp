#include "wire/copy.h"

#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Kind of a copy. With the size, it is the key of the copy's expected duration.
enum Way : std::uint64_t { kHostToDevice = 1, kDeviceToHost, kRows };

/// Waits for the stream if the client waits for the copy. Other threads of the session continue
/// meanwhile.
CUresult finish(Thread& thread, CUresult status, CUstream stream, bool synchronise) {
  if (status != CUDA_SUCCESS || !synchronise) return status;
  thread.passTicket(stream);
  return thread.driver.cuStreamSynchronize(stream);
}

CUresult counted(Figures::Word& word, std::uint64_t bytes, CUresult status) {
  if (status == CUDA_SUCCESS) count(word, bytes);
  return status;
}

/// The byte counter for the direction of a 2D copy; null for a copy from host to host.
Figures::Word* wayOf(Figures& figures, const CUDA_MEMCPY2D& copy) {
  const bool fromHost = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool toHost = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  if (fromHost) return toHost ? nullptr : &figures.bytesHostToDevice;
  return toHost ? &figures.bytesDeviceToHost : &figures.bytesDeviceToDevice;
}

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// Whether the rows of a 2D copy are device memory, or lie within memory shared with the client.
bool reachable(const Thread& thread, CUmemorytype type, const void* host, std::uint64_t pitch,
               std::uint64_t y, std::uint64_t x, const CUDA_MEMCPY2D& copy) {
  if (type == CU_MEMORYTYPE_DEVICE) return true;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // so that the sum below cannot overflow
  if (type != CU_MEMORYTYPE_HOST || pitch > kMost || y > kMost || x > kMost ||
      copy.Height > kMost || copy.WidthInBytes > kMost)
    return false;
  const auto offset =
      static_cast<unsigned __int128>(pitch) * (y + copy.Height - 1) + x + copy.WidthInBytes;
  const auto begin = reinterpret_cast<std::uint64_t>(host);
  return offset <= kMost &&
         thread.session.shared.contains(begin, static_cast<std::uint64_t>(offset));
}

}  // namespace

CUresult cuMemcpyHtoDAsync_v2(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  const auto copy = in.get<wire::CopyFrame>();
  const auto content = in.getBytes(wire::kInlineCopyBytes);
  if (!in.finished() || (copy.source == 0 && content.size() != copy.bytes))
    return thread.refuseFrame();
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUstream>(copy.stream, &stream); status != CUDA_SUCCESS)
    return status;
  if (copy.source != 0 && !thread.session.shared.contains(copy.source, copy.bytes))
    return CUDA_ERROR_INVALID_VALUE;
  // A captured copy runs later and more than once, when the frame is gone.
  if (copy.source == 0 && thread.isCaptured(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const void* source = copy.source != 0 ? pointer(copy.source) : content.data();
  thread.awaitWindow(window, stream, copy.bytes, {kHostToDevice, copy.bytes});
  const CUresult status =
      counted(thread.session.figures.bytesHostToDevice, copy.bytes,
              thread.driver.cuMemcpyHtoDAsync_v2(copy.destination, source, copy.bytes, stream));
  return finish(thread, status, stream, copy.synchronise != 0);
}

CUresult cuMemcpyDtoHAsync_v2(Thread& thread, wire::Decoder& in, wire::Encoder& out,
                              Window window) {
  const auto copy = in.get<wire::CopyFrame>();
  if (!in.finished() || (copy.destination == 0 && copy.bytes > wire::kInlineCopyBytes))
    return thread.refuseFrame();
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUstream>(copy.stream, &stream); status != CUDA_SUCCESS)
    return status;
  if (copy.destination != 0 && !thread.session.shared.contains(copy.destination, copy.bytes))
    return CUDA_ERROR_INVALID_VALUE;
  if (copy.destination == 0 && thread.isCaptured(stream))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  void* destination = copy.destination != 0 ? pointer(copy.destination) : out.putSpace(copy.bytes);
  if (destination == nullptr) return thread.refuseFrame();
  thread.awaitWindow(window, stream, copy.bytes, {kDeviceToHost, copy.bytes});
  const CUresult status =
      counted(thread.session.figures.bytesDeviceToHost, copy.bytes,
              thread.driver.cuMemcpyDtoHAsync_v2(destination, copy.source, copy.bytes, stream));
  return finish(thread, status, stream, copy.synchronise != 0 || copy.destination == 0);
}

CUresult cuMemcpy2DAsync_v2(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  const auto copy = in.get<CUDA_MEMCPY2D>();
  const auto handle = in.get<std::uint64_t>();
  const auto synchronise = in.get<std::uint32_t>();
  if (!in.finished() || copy.Height == 0) return thread.refuseFrame();
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUstream>(handle, &stream); status != CUDA_SUCCESS)
    return status;
  if (!reachable(thread, copy.srcMemoryType, copy.srcHost, copy.srcPitch, copy.srcY,
                 copy.srcXInBytes, copy) ||
      !reachable(thread, copy.dstMemoryType, copy.dstHost, copy.dstPitch, copy.dstY,
                 copy.dstXInBytes, copy)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // A copy within the device uses memory bandwidth, so it needs a window whatever its size.
  const bool inside =
      copy.srcMemoryType == CU_MEMORYTYPE_DEVICE && copy.dstMemoryType == CU_MEMORYTYPE_DEVICE;
  thread.awaitWindow(inside ? Window::always : window, stream, copy.WidthInBytes * copy.Height,
                     {kRows, copy.WidthInBytes, copy.Height});
  const CUresult status = thread.driver.cuMemcpy2DAsync_v2(&copy, stream);
  if (Figures::Word* way = wayOf(thread.session.figures, copy))
    counted(*way, copy.WidthInBytes * copy.Height, status);
  return finish(thread, status, stream, synchronise != 0);
}

CUresult cuMemcpyDtoDAsync_v2(Thread& thread, CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                              size_t ByteCount, CUstream hStream) {
  return counted(thread.session.figures.bytesDeviceToDevice, ByteCount,
                 thread.driver.cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream));
}

CUresult cuMemcpyPeerAsync(Thread& thread, CUdeviceptr dstDevice, CUcontext dstContext,
                           CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
                           CUstream hStream) {
  return counted(thread.session.figures.bytesDeviceToDevice, ByteCount,
                 thread.driver.cuMemcpyPeerAsync(dstDevice, dstContext, srcDevice, srcContext,
                                                 ByteCount, hStream));
}

}  // namespace worker
