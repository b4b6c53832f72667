#include "wire/copy.h"

#include <array>
#include <bit>

#include "native/worker/calls/copy_operands.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Kind of a copy. With the size, it is the key of the copy's expected duration.
enum Way : std::uint64_t { kHostToDevice = 1, kDeviceToHost, kBlock };

/// Natively, a copy is no wait that a capture of another thread forbids.
CUresult await(Thread& thread, CUstream stream) {
  const RelaxedCapture relaxed(thread.driver);
  return thread.driver.cuStreamSynchronize(stream);
}

/// Waits for the stream if the client waits for the copy. Other threads of the session continue
/// meanwhile.
CUresult finish(Thread& thread, CUresult status, CUstream stream, bool synchronise) {
  if (status != CUDA_SUCCESS || !synchronise) return status;
  thread.passTicket(stream);
  return await(thread, stream);
}

CUresult counted(Figures::Word& word, std::uint64_t bytes, CUresult status) {
  if (status == CUDA_SUCCESS) count(word, bytes);
  return status;
}

/// The byte counter for the direction of a copy; null for a copy from host to host.
Figures::Word* wayOf(Figures& figures, const CUDA_MEMCPY3D& copy) {
  const bool fromHost = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool toHost = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  if (fromHost) return toHost ? nullptr : &figures.bytesHostToDevice;
  return toHost ? &figures.bytesDeviceToHost : &figures.bytesDeviceToDevice;
}

/// Whether the driver's own waiting copy is called, as by the program, in place of a copy and a
/// wait. It keeps the turn, so nothing else may run in the stream.
bool isInTurn(const Thread& thread, const wire::CopyFrame& copy, CUstream stream) {
  return copy.wait == wire::kCopyEndsInTurn && (stream == nullptr || stream == CU_STREAM_LEGACY) &&
         !thread.session.captures.any();
}

/// Copies to the reply, whose memory is registered. Waits for a word that the GPU writes, which is
/// faster than the driver's waiting calls.
CUresult copyToReply(Thread& thread, const wire::CopyFrame& copy, void* reply, CUstream stream,
                     bool inTurn) {
  const CUresult status =
      thread.driver.cuMemcpyDtoHAsync_v2(reply, copy.source, copy.bytes, stream);
  if (status != CUDA_SUCCESS) return status;
  const bool followed = thread.follow(stream);
  if (!inTurn) thread.passTicket(stream);
  return followed && thread.completion.await() ? CUDA_SUCCESS : await(thread, stream);
}

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// A copy of layers of rows. Its frame has the structure with handles in place of objects, the
/// stream, and whether the client waits.
struct BlockFrame {
  CUDA_MEMCPY3D copy;
  CUstream stream = nullptr;
  bool synchronise = false;
  std::array<std::uint64_t, 2> contexts{};  ///< handles in a CUDA_MEMCPY3D_PEER

  CUresult decode(Thread& thread, wire::Decoder& in) {
    copy = in.get<CUDA_MEMCPY3D>();
    const auto handle = in.get<std::uint64_t>();
    synchronise = in.get<std::uint32_t>() != 0;
    if (!in.finished()) return thread.refuseFrame();
    if (const CUresult status = thread.find<CUstream>(handle, &stream); status != CUDA_SUCCESS)
      return status;
    contexts = {reinterpret_cast<std::uint64_t>(copy.reserved0),
                reinterpret_cast<std::uint64_t>(copy.reserved1)};
    return resolveOperands(thread, copy);
  }
  std::uint64_t bytes() const { return copy.WidthInBytes * copy.Height * copy.Depth; }
  /// A copy within the device uses memory bandwidth, so it needs a window whatever its size.
  void awaitWindow(Thread& thread, Window window) const {
    const bool inside =
        copy.srcMemoryType != CU_MEMORYTYPE_HOST && copy.dstMemoryType != CU_MEMORYTYPE_HOST;
    thread.awaitWindow(inside ? Window::always : window, stream, bytes(),
                       {kBlock, copy.WidthInBytes, copy.Height, copy.Depth});
  }
  CUresult end(Thread& thread, CUresult status) const {
    if (Figures::Word* way = wayOf(thread.session.figures, copy)) counted(*way, bytes(), status);
    return finish(thread, status, stream, synchronise);
  }
};

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
  Figures::Word& figure = thread.session.figures.bytesHostToDevice;
  if (copy.source == 0 && isInTurn(thread, copy, stream))
    return counted(figure, copy.bytes,
                   thread.driver.cuMemcpyHtoD_v2(copy.destination, source, copy.bytes));
  const CUresult status =
      counted(figure, copy.bytes,
              thread.driver.cuMemcpyHtoDAsync_v2(copy.destination, source, copy.bytes, stream));
  if (copy.source == 0 && copy.wait == wire::kCopyEnqueued && status == CUDA_SUCCESS)
    thread.noteCopy(stream);
  return finish(thread, status, stream, copy.wait != wire::kCopyEnqueued);
}

CUresult cuMemcpyDtoHAsync_v2(Thread& thread, wire::Decoder& in, wire::Encoder& out,
                              Window window) {
  const auto copy = in.get<wire::CopyFrame>();
  if (!in.finished() || (copy.destination == 0 && copy.bytes > wire::kInlineCopyBytes))
    return thread.refuseFrame();
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUstream>(copy.stream, &stream); status != CUDA_SUCCESS)
    return status;
  if (copy.destination != 0 &&
      !thread.session.shared.containsWritable(copy.destination, copy.bytes))
    return CUDA_ERROR_INVALID_VALUE;
  if (copy.destination == 0 && thread.isCaptured(stream))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  void* destination = copy.destination != 0 ? pointer(copy.destination) : out.putSpace(copy.bytes);
  if (destination == nullptr) return thread.refuseFrame();
  thread.awaitWindow(window, stream, copy.bytes, {kDeviceToHost, copy.bytes});
  Figures::Word& figure = thread.session.figures.bytesDeviceToHost;
  const bool inTurn = copy.destination == 0 && isInTurn(thread, copy, stream);
  if (copy.destination == 0 && thread.writesReply(!inTurn) && thread.mayFollow())
    return counted(figure, copy.bytes, copyToReply(thread, copy, destination, stream, inTurn));
  if (inTurn)
    return counted(figure, copy.bytes,
                   thread.driver.cuMemcpyDtoH_v2(destination, copy.source, copy.bytes));
  const CUresult status =
      counted(figure, copy.bytes,
              thread.driver.cuMemcpyDtoHAsync_v2(destination, copy.source, copy.bytes, stream));
  return finish(thread, status, stream, copy.wait != wire::kCopyEnqueued || copy.destination == 0);
}

CUresult cuMemcpy3DAsync_v2(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  BlockFrame frame;
  if (const CUresult status = frame.decode(thread, in); status != CUDA_SUCCESS) return status;
  frame.awaitWindow(thread, window);
  return frame.end(thread, thread.driver.cuMemcpy3DAsync_v2(&frame.copy, frame.stream));
}

CUresult cuMemcpy3DPeerAsync(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  BlockFrame frame;
  if (const CUresult status = frame.decode(thread, in); status != CUDA_SUCCESS) return status;
  auto copy = std::bit_cast<CUDA_MEMCPY3D_PEER>(frame.copy);
  for (CUcontext* context : {&copy.srcContext, &copy.dstContext}) {
    const std::uint64_t handle = frame.contexts[context == &copy.srcContext ? 0 : 1];
    if (const CUresult status = thread.find<CUcontext>(handle, context); status != CUDA_SUCCESS)
      return status;
  }
  frame.awaitWindow(thread, window);
  return frame.end(thread, thread.driver.cuMemcpy3DPeerAsync(&copy, frame.stream));
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
