// Tensor maps are 128 bytes that only the GPU reads; the worker's driver encodes them. They hold
// device addresses, which are the same here.
#include <algorithm>
#include <array>
#include <cstring>

#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

constexpr cuuint32_t kMaxRank = 5;

/// Dimensions and strides, as many as the rank says; the wire always carries five.
template <class T>
void putArray(wire::Encoder& encoder, const T* values, cuuint32_t count) {
  std::array<T, kMaxRank> all{};
  if (values != nullptr) std::copy_n(values, count, all.begin());
  encoder.put(all);
}

CUresult send(Call& call, CUtensorMap* tensorMap) {
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) *tensorMap = reply.get<CUtensorMap>();
  return status;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType,
                                cuuint32_t tensorRank, void* globalAddress,
                                const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                const cuuint32_t* boxDim, const cuuint32_t* elementStrides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2Promotion,
                                CUtensorMapFloatOOBfill oobFill) {
  if (tensorMap == nullptr || tensorRank == 0 || tensorRank > kMaxRank || globalDim == nullptr ||
      boxDim == nullptr || elementStrides == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Call call;
  if (!call.begin(CallNumber::cuTensorMapEncodeTiled, 256, kUnordered)) return call.status();
  wire::Encoder& encoder = call.encoder();
  encoder.put(std::array<std::uint32_t, 6>{tensorDataType, tensorRank, interleave, swizzle,
                                           l2Promotion, oobFill});
  encoder.put(globalAddress);
  putArray(encoder, globalDim, tensorRank);
  putArray(encoder, globalStrides, tensorRank - 1);
  putArray(encoder, boxDim, tensorRank);
  putArray(encoder, elementStrides, tensorRank);
  return send(call, tensorMap);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType,
                                 cuuint32_t tensorRank, void* globalAddress,
                                 const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                 const int* pixelBoxLowerCorner, const int* pixelBoxUpperCorner,
                                 cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                 const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                 CUtensorMapFloatOOBfill oobFill) {
  if (tensorMap == nullptr || tensorRank < 3 || tensorRank > kMaxRank || globalDim == nullptr ||
      elementStrides == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Call call;
  if (!call.begin(CallNumber::cuTensorMapEncodeIm2col, 320, kUnordered)) return call.status();
  wire::Encoder& encoder = call.encoder();
  encoder.put(std::array<std::uint32_t, 8>{tensorDataType, tensorRank, interleave, swizzle,
                                           l2Promotion, oobFill, channelsPerPixel,
                                           pixelsPerColumn});
  encoder.put(globalAddress);
  putArray(encoder, globalDim, tensorRank);
  putArray(encoder, globalStrides, tensorRank - 1);
  putArray(encoder, pixelBoxLowerCorner, tensorRank - 2);
  putArray(encoder, pixelBoxUpperCorner, tensorRank - 2);
  putArray(encoder, elementStrides, tensorRank);
  return send(call, tensorMap);
}

CUresult cuTensorMapEncodeIm2colWide(
    CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
    int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
    CUtensorMapFloatOOBfill oobFill) {
  if (tensorMap == nullptr || tensorRank < 3 || tensorRank > kMaxRank || globalDim == nullptr ||
      elementStrides == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Call call;
  if (!call.begin(CallNumber::cuTensorMapEncodeIm2colWide, 320, kUnordered)) return call.status();
  wire::Encoder& encoder = call.encoder();
  encoder.put(std::array<std::uint32_t, 9>{tensorDataType, tensorRank, interleave, mode, swizzle,
                                           l2Promotion, oobFill, channelsPerPixel,
                                           pixelsPerColumn});
  encoder.put(std::array<int, 2>{pixelBoxLowerCornerWidth, pixelBoxUpperCornerWidth});
  encoder.put(globalAddress);
  putArray(encoder, globalDim, tensorRank);
  putArray(encoder, globalStrides, tensorRank - 1);
  putArray(encoder, elementStrides, tensorRank);
  return send(call, tensorMap);
}

}  // namespace interposer
