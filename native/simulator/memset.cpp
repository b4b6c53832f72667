// All memsets: rows of one value of 1, 2 or 4 bytes.
#include "native/simulator/memset.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/memory.h"
#include "native/simulator/stream.h"

namespace simulator {
namespace {

template <class Element>
void fill(const CUDA_MEMSET_NODE_PARAMS& memset) {
  for (std::size_t row = 0; row < memset.height; ++row)
    std::fill_n(reinterpret_cast<Element*>(memset.dst + row * memset.pitch), memset.width,
                static_cast<Element>(memset.value));
}

}  // namespace

CUresult check(const CUDA_MEMSET_NODE_PARAMS& memset) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 2;
  const auto& [begin, pitch, value, size, width, height] = memset;
  if (size != 1 && size != 2 && size != 4) return CUDA_ERROR_INVALID_VALUE;
  if (width == 0 || height == 0 || width > kMost / size) return CUDA_ERROR_INVALID_VALUE;
  if (height > 1 && (pitch < width * size || height > kMost / pitch))
    return CUDA_ERROR_INVALID_VALUE;
  if (begin % size != 0 || (height > 1 && pitch % size != 0)) return CUDA_ERROR_INVALID_VALUE;
  return insideAllocation(begin, (height - 1) * pitch + width * size) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
}

void run(const CUDA_MEMSET_NODE_PARAMS& memset) {
  switch (memset.elementSize) {
    case 1: return fill<std::uint8_t>(memset);
    case 2: return fill<std::uint16_t>(memset);
    default: return fill<std::uint32_t>(memset);
  }
}

}  // namespace simulator

using namespace simulator;

namespace {

template <class Element>
CUresult fill(CUstream hStream, CUdeviceptr begin, std::size_t pitch, Element value,
              std::size_t width, std::size_t height, bool synchronous) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    const CUDA_MEMSET_NODE_PARAMS memset{begin, pitch, value, sizeof(Element), width, height};
    const CUresult status = check(memset);
    if (status != CUDA_SUCCESS) return status;
    // The host can read pinned memory directly, so a memset of it returns after it has ended.
    const auto target = Allocations::all().find(begin);
    if (synchronous && target && (target->host() || target->kind == MemoryKind::managed)) {
      stream.perform([memset] { run(memset); });
      return fault();
    }
    stream.submit([memset] { run(memset); });
    return CUDA_SUCCESS;
  });
}

}  // namespace

DRIVER_CALL cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill(nullptr, dstDevice, 0, uc, N, 1, true);
}
DRIVER_CALL cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return fill(nullptr, dstDevice, 0, us, N, 1, true);
}
DRIVER_CALL cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill(nullptr, dstDevice, 0, ui, N, 1, true);
}

DRIVER_CALL cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return fill(hStream, dstDevice, 0, uc, N, 1, false);
}
DRIVER_CALL cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return fill(hStream, dstDevice, 0, us, N, 1, false);
}
DRIVER_CALL cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return fill(hStream, dstDevice, 0, ui, N, 1, false);
}

DRIVER_CALL cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                            size_t Height) {
  return fill(nullptr, dstDevice, dstPitch, uc, Width, Height, true);
}
DRIVER_CALL cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                             size_t Width, size_t Height) {
  return fill(nullptr, dstDevice, dstPitch, us, Width, Height, true);
}
DRIVER_CALL cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                             size_t Height) {
  return fill(nullptr, dstDevice, dstPitch, ui, Width, Height, true);
}

DRIVER_CALL cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                              size_t Width, size_t Height, CUstream hStream) {
  return fill(hStream, dstDevice, dstPitch, uc, Width, Height, false);
}
DRIVER_CALL cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                               size_t Width, size_t Height, CUstream hStream) {
  return fill(hStream, dstDevice, dstPitch, us, Width, Height, false);
}
DRIVER_CALL cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                               size_t Width, size_t Height, CUstream hStream) {
  return fill(hStream, dstDevice, dstPitch, ui, Width, Height, false);
}
