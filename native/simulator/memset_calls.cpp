// All memsets: rows of one value of 1, 2 or 4 bytes.
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/memory.h"
#include "native/simulator/memset.h"
#include "native/simulator/stream_capture.h"

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
    const auto node = captured(stream, [&](Work& work) {
      work = MemsetWork{memset, &stream.context};
      return CUDA_SUCCESS;
    });
    if (node) return *node;
    // The host can read pinned memory directly, so a memset of it returns after it has ended.
    const auto target = Allocations::all().find(begin);
    if (synchronous && target && (target->host() || target->managed())) {
      stream.perform([memset = prepared(memset)] { run(memset); });
      return fault();
    }
    stream.submit([memset = prepared(memset)] { run(memset); });
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
