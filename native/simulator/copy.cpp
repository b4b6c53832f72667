// Linear copies.
#include "native/simulator/copy.h"

#include <cstring>
#include <vector>

#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/handles.h"
#include "native/simulator/memory.h"

namespace simulator {
namespace {

constexpr std::size_t kStaged =
    64 << 10;  ///< a pageable source up to this size is copied at once, so the call need not wait

bool known(std::uint64_t address) { return Allocations::all().find(address).has_value(); }

/// Bytes from the first to the last one accessed on a side.
std::size_t extent(const Copy& copy, std::size_t pitch, std::size_t layer) {
  if (copy.rows == 0 || copy.layers == 0) return 0;
  return (copy.layers - 1) * layer + (copy.rows - 1) * pitch + copy.width;
}
std::size_t sourceExtent(const Copy& copy) {
  return extent(copy, copy.sourcePitch, copy.sourceLayer);
}

bool allowed(std::uint64_t address, std::size_t bytes, Side side) {
  if (side == Side::host) return address != 0;
  if (side == Side::any && !known(address)) return address != 0;  // pageable host memory
  return insideAllocation(address, bytes);
}

void run(const Copy& copy, const std::byte* source) {
  for (std::size_t layer = 0; layer < copy.layers; ++layer) {
    auto* destination =
        reinterpret_cast<std::byte*>(copy.destination + layer * copy.destinationLayer);
    const std::byte* from = source + layer * copy.sourceLayer;
    for (std::size_t row = 0; row < copy.rows; ++row) {
      std::memmove(destination + row * copy.destinationPitch, from + row * copy.sourcePitch,
                   copy.width);
    }
  }
}

}  // namespace

void run(const Copy& copy) { run(copy, reinterpret_cast<const std::byte*>(copy.source)); }

CUresult check(const Copy& copy) {
  const std::size_t destination = extent(copy, copy.destinationPitch, copy.destinationLayer);
  const bool valid = allowed(copy.destination, destination, copy.to) &&
                     allowed(copy.source, sourceExtent(copy), copy.from);
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult submit(const Copy& copy, Stream& stream, bool synchronous) {
  if (copy.width == 0 || copy.rows == 0) return CUDA_SUCCESS;
  const CUresult status = check(copy);
  if (status != CUDA_SUCCESS) return status;
  const bool fromPageable = !known(copy.source), toPageable = !known(copy.destination);
  const auto* source = reinterpret_cast<const std::byte*>(copy.source);
  const std::size_t bytes = sourceExtent(copy);
  if (fromPageable && !toPageable && !synchronous && bytes <= kStaged) {
    stream.submit([copy, staged = std::vector<std::byte>(source, source + bytes)] {
      run(copy, staged.data());
    });
    return CUDA_SUCCESS;
  }
  const auto host = [](std::uint64_t address) {
    const auto found = Allocations::all().find(address);
    return !found || found->host();
  };
  const auto work = [copy] { run(copy); };
  if (fromPageable || toPageable ||
      (synchronous && (host(copy.source) || host(copy.destination)))) {
    stream.perform(work);
    return fault();
  }
  stream.submit(work);
  return CUDA_SUCCESS;
}

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
}  // namespace simulator

using namespace simulator;

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
