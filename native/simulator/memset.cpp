// All memsets: rows of one value of 1, 2 or 4 bytes.
#include <algorithm>
#include <limits>

#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/memory.h"
#include "native/simulator/stream.h"

using namespace simulator;

namespace {

template <class Element>
CUresult fill(CUstream hStream, CUdeviceptr begin, std::size_t pitch, Element value,
              std::size_t width, std::size_t height, bool synchronous) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 2;
    if (width > kMost / sizeof(Element)) return CUDA_ERROR_INVALID_VALUE;
    if (height > 1 && (pitch < width * sizeof(Element) || height > kMost / pitch))
      return CUDA_ERROR_INVALID_VALUE;
    if (begin % sizeof(Element) != 0 || (height > 1 && pitch % sizeof(Element) != 0))
      return CUDA_ERROR_INVALID_VALUE;
    if (!insideAllocation(begin, (height - 1) * pitch + width * sizeof(Element)))
      return CUDA_ERROR_INVALID_VALUE;
    const auto work = [=] {
      for (std::size_t row = 0; row < height; ++row)
        std::fill_n(reinterpret_cast<Element*>(begin + row * pitch), width, value);
    };
    // The host can read pinned memory directly, so a memset of it returns after it has ended.
    const auto target = Allocations::all().find(begin);
    if (synchronous && target && (target->host() || target->kind == MemoryKind::managed)) {
      stream.perform(work);
      return fault();
    }
    stream.submit(work);
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
