// Copies. The host memory decides the path. Pinned memory is shared with the worker, so the copy is
// enqueued. A small pageable copy travels in the frame or the reply. A large one is staged.
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "interposer/contexts/contexts.h"
#include "interposer/graphs/pageable_copy.h"
#include "interposer/memory/host_memory.h"
#include "interposer/memory/moving_memory.h"
#include "interposer/memory/pinned_copy.h"
#include "interposer/memory/staging.h"
#include "interposer/session/call.h"
#include "interposer/session/call_hooks.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/copy.h"
#include "wire/wait.h"

namespace interposer {

namespace {

void* hostAddress(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

/// What ran when the current ordered call of this thread took its place in the order, as far as the
/// thread knows. For copies with the legacy default stream.
Completed::Load loadBefore(CUstream stream) {
  if (!isLegacy(stream)) return Completed::kBusy;
  const Thread& thread = Thread::current();
  const std::uint64_t before = thread.session->order.changes() - wire::kTicket;
  return thread.completed.load(thread.context(), before);
}
/// Whether a copy with the legacy default stream waits for nothing.
bool endsInTurn(Completed::Load load) {
  return load == Completed::kQuiet || load == Completed::kIdle;
}
/// A copy with the stream has ended, or will in its turn.
void noteEnded(CUstream stream, Completed::Load before) {
  Thread& thread = Thread::current();
  if (isLegacy(stream))
    thread.completed.noteLoad(thread.context(), thread.changes,
                              before == Completed::kIdle ? before : Completed::kQuiet);
}

/// Whether only kernels and later calls of this session can see the memory's content. Managed
/// memory is no such, nor memory that other processes may use, nor a mirrored variable.
bool isHidden(CUdeviceptr address, std::size_t bytes) {
  return isAllocated(address, bytes) && !overlappingHostRange(address, bytes) &&
         !Session::current()->exportsMemory() &&
         callHooks.load(std::memory_order_acquire) == nullptr;
}

/// A small copy from pageable memory: its bytes are read now and travel in the frame. A copy that
/// the program waits for is only enqueued if nothing else runs in the context, so that nobody can
/// notice. Natively, too, it returns before the bytes have reached the device.
CUresult copyInlineHtoD(CUdeviceptr destination, const void* source, std::size_t bytes,
                        CUstream stream, bool synchronise) {
  Call call;
  if (!call.begin(CallNumber::cuMemcpyHtoDAsync_v2, sizeof(wire::CopyFrame) + 16 + bytes, kOrdered))
    return call.status();
  const Completed::Load load = synchronise ? loadBefore(stream) : Completed::kBusy;
  const bool goesOn = synchronise ? load == Completed::kIdle && isHidden(destination, bytes)
                                  : isAllocated(destination, bytes);
  const auto wait = !synchronise || goesOn ? wire::kCopyEnqueued
                    : endsInTurn(load)     ? wire::kCopyEndsInTurn
                                           : wire::kCopyEnds;
  call.encoder().put(wire::CopyFrame{destination, 0, bytes, number(stream), wait, 0});
  call.encoder().putBytes(source, bytes);
  wire::Decoder reply;
  const CUresult status = goesOn ? call.enqueue() : call.wait(reply);
  if (status == CUDA_SUCCESS && synchronise) noteEnded(stream, load);
  return status;
}

CUresult copyInlineDtoH(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream) {
  Call call;
  if (!call.begin(CallNumber::cuMemcpyDtoHAsync_v2, sizeof(wire::CopyFrame), kOrdered))
    return call.status();
  const Completed::Load load = loadBefore(stream);
  const auto wait = endsInTurn(load) ? wire::kCopyEndsInTurn : wire::kCopyEnds;
  call.encoder().put(wire::CopyFrame{0, source, bytes, number(stream), wait, 0});
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto content = reply.getBytes(wire::kInlineCopyBytes);
  if (content.size() != bytes) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  noteEnded(stream, load);
  Thread& thread = Thread::current();
  const std::uint64_t now = wire::monotonicNanoseconds();
  thread.completed.noteEnded(thread.context(), number(stream), thread.changes, now);
  noteWaited(stream, now);
  std::memcpy(destination, content.data(), bytes);
  return afterWait(), CUDA_SUCCESS;
}

/// A pageable copy of a stream that captures runs when the graph does.
CUresult captureLinear(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes,
                       CUstream stream) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = source;
  copy.dstDevice = destination;
  copy.WidthInBytes = copy.srcPitch = copy.dstPitch = bytes;
  copy.Height = copy.Depth = copy.srcHeight = copy.dstHeight = 1;
  return captureCopy(copy, stream);
}

CUdeviceptr unified(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

CUresult copyDtoD(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream stream) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const Waiting waiting(bytes > 0 &&
                        !(isAllocated(destination, bytes) && isAllocated(source, bytes)));
  return remote::cuMemcpyDtoDAsync_v2(destination, source, bytes, stream);
}

/// Whether memory that the program names as the host's is the GPU's. Device memory works natively,
/// because one address space has both.
bool isCopiedOnGpu(const void* host) {
  const CUdeviceptr address = unified(host);
  return moves(address) ? isOnGpu(address) : isDevice(address);
}

CUresult copyOnGpu(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream stream,
                   bool synchronise) {
  const CUresult status = copyDtoD(destination, source, bytes, stream);
  return status == CUDA_SUCCESS && synchronise ? interposer::cuStreamSynchronize(stream) : status;
}

/// Whether every page of the host's memory can be read. False also where the question is forbidden.
bool isReadable(const void* memory, std::size_t bytes) {
  constexpr std::size_t kPage = 4096, kMost = wire::kInlineCopyBytes / kPage + 1;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  iovec pages[kMost];
  std::size_t count = 0;
  for (std::uintptr_t at = begin; at < begin + bytes && count < kMost; ++count) {
    pages[count] = {reinterpret_cast<void*>(at), 1};
    at = (at / kPage + 1) * kPage;
  }
  std::byte content[kMost];
  const iovec local{content, count};
  return process_vm_readv(getpid(), &local, 1, pages, count, 0) == static_cast<ssize_t>(count);
}

/// The driver's verdict on a copy as a whole. Otherwise the host's memory would be read or written
/// before the driver refuses the copy or a later part. If it tells no range, one byte is copied.
CUresult wholeVerdict(CUdeviceptr device, std::size_t bytes, CUstream stream) {
  if (isAllocated(device, bytes)) return CUDA_SUCCESS;
  const CUdeviceptr last = device + bytes - 1;
  if (last < device) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr start = 0;
  std::size_t size = 0;
  const CUresult status = remote::cuMemGetAddressRange_v2(&start, &size, last);
  std::byte content{};
  return status == CUDA_ERROR_NOT_FOUND ? copyInlineDtoH(&content, last, 1, stream) : status;
}

CUresult copyHtoD(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream stream,
                  bool synchronise) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (bytes == 0) return CUDA_SUCCESS;
  if (source == nullptr || destination == 0) return CUDA_ERROR_INVALID_VALUE;
  if (isPinned(source, bytes))
    return copyPinnedHtoD(destination, source, bytes, stream, synchronise);
  if (isCopiedOnGpu(source))
    return copyOnGpu(destination, unified(source), bytes, stream, synchronise);
  if (!synchronise && captures(stream))
    return captureLinear(destination, unified(source), bytes, stream);
  const bool travels = bytes <= wire::kInlineCopyBytes;
  if (!travels || !(isAllocated(destination, bytes) || isReadable(source, bytes))) {
    if (const CUresult verdict = wholeVerdict(destination, bytes, stream); verdict != CUDA_SUCCESS)
      return verdict;
  }
  return travels ? copyInlineHtoD(destination, source, bytes, stream, synchronise)
                 : stageHtoD(destination, source, bytes, stream, synchronise);
}

CUresult copyDtoH(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream,
                  bool synchronise) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (bytes == 0) return CUDA_SUCCESS;
  if (destination == nullptr || source == 0) return CUDA_ERROR_INVALID_VALUE;
  if (isPinned(destination, bytes))
    return copyPinnedDtoH(destination, source, bytes, stream, synchronise);
  if (isCopiedOnGpu(destination))
    return copyOnGpu(unified(destination), source, bytes, stream, synchronise);
  if (!synchronise && captures(stream))
    return captureLinear(unified(destination), source, bytes, stream);
  if (bytes <= wire::kInlineCopyBytes) return copyInlineDtoH(destination, source, bytes, stream);
  const CUresult verdict = wholeVerdict(source, bytes, stream);
  return verdict == CUDA_SUCCESS ? stageDtoH(destination, source, bytes, stream) : verdict;
}

/// Pageable to pageable: natively done in stream order by the driver.
CUresult copyHtoH(void* destination, const void* source, std::size_t bytes, CUstream stream) {
  if (captures(stream)) return captureLinear(unified(destination), unified(source), bytes, stream);
  if (const CUresult status = interposer::cuStreamSynchronize(stream); status != CUDA_SUCCESS)
    return status;
  return std::memcpy(destination, source, bytes), CUDA_SUCCESS;
}

CUresult copyAny(CUdeviceptr dst, CUdeviceptr src, std::size_t bytes, CUstream stream,
                 bool synchronise) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (bytes == 0) return CUDA_SUCCESS;
  if (dst == 0 || src == 0) return CUDA_ERROR_INVALID_VALUE;
  const bool toDevice = isDevice(dst);
  const bool fromDevice = isDevice(src);
  if (toDevice && fromDevice) return copyOnGpu(dst, src, bytes, stream, synchronise && moves(dst));
  if (toDevice) return copyHtoD(dst, hostAddress(src), bytes, stream, synchronise);
  if (fromDevice) return copyDtoH(hostAddress(dst), src, bytes, stream, synchronise);
  return copyHtoH(hostAddress(dst), hostAddress(src), bytes, stream);
}

}  // namespace

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                         CUstream defaultStream) {
  return copyHtoD(dstDevice, srcHost, ByteCount, defaultStream, true);
}

CUresult cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                         CUstream defaultStream) {
  return copyDtoH(dstHost, srcDevice, ByteCount, defaultStream, true);
}

/// A copy inside the device does not block the host, as natively.
CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                         CUstream defaultStream) {
  return copyDtoD(dstDevice, srcDevice, ByteCount, defaultStream);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream defaultStream) {
  return copyAny(dst, src, ByteCount, defaultStream, true);
}

/// Comes after all earlier work of both contexts, and before all later work. A stream orders the
/// work of its own context only.
CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                      CUcontext srcContext, size_t ByteCount, CUstream defaultStream) {
  for (const CUcontext context : {dstContext, srcContext}) {
    if (const CUresult status = interposer::cuCtxSynchronize_v2(context); status != CUDA_SUCCESS)
      return status;
  }
  const CUresult status = remote::cuMemcpyPeerAsync(dstDevice, dstContext, srcDevice, srcContext,
                                                    ByteCount, defaultStream);
  return status == CUDA_SUCCESS ? interposer::cuStreamSynchronize(defaultStream) : status;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                              CUstream hStream) {
  return copyHtoD(dstDevice, srcHost, ByteCount, hStream, false);
}

CUresult cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
  return copyDtoH(dstHost, srcDevice, ByteCount, hStream, false);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
  return copyDtoD(dstDevice, srcDevice, ByteCount, hStream);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return copyAny(dst, src, ByteCount, hStream, false);
}

}  // namespace interposer
