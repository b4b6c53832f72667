#include <array>

#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

template <class T>
using PerDimension = std::array<T, 5>;

CUresult answer(CUresult status, const CUtensorMap& map, wire::Encoder& out) {
  if (status == CUDA_SUCCESS) out.put(map);
  return status;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto [type, rank, interleave, swizzle, promotion, fill] =
      in.get<std::array<std::uint32_t, 6>>();
  auto* address = in.get<void*>();
  const auto dimensions = in.get<PerDimension<cuuint64_t>>();
  const auto strides = in.get<PerDimension<cuuint64_t>>();
  const auto box = in.get<PerDimension<cuuint32_t>>();
  const auto elementStrides = in.get<PerDimension<cuuint32_t>>();
  if (!in.finished() || rank == 0 || rank > box.size()) return thread.refuseFrame();
  if (thread.driver.cuTensorMapEncodeTiled == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUtensorMap map{};
  const CUresult status = thread.driver.cuTensorMapEncodeTiled(
      &map, static_cast<CUtensorMapDataType>(type), rank, address, dimensions.data(),
      strides.data(), box.data(), elementStrides.data(),
      static_cast<CUtensorMapInterleave>(interleave), static_cast<CUtensorMapSwizzle>(swizzle),
      static_cast<CUtensorMapL2promotion>(promotion), static_cast<CUtensorMapFloatOOBfill>(fill));
  return answer(status, map, out);
}

CUresult cuTensorMapEncodeIm2col(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto [type, rank, interleave, swizzle, promotion, fill, channels, pixels] =
      in.get<std::array<std::uint32_t, 8>>();
  auto* address = in.get<void*>();
  const auto dimensions = in.get<PerDimension<cuuint64_t>>();
  const auto strides = in.get<PerDimension<cuuint64_t>>();
  const auto lower = in.get<PerDimension<int>>();
  const auto upper = in.get<PerDimension<int>>();
  const auto elementStrides = in.get<PerDimension<cuuint32_t>>();
  if (!in.finished() || rank < 3 || rank > lower.size()) return thread.refuseFrame();
  if (thread.driver.cuTensorMapEncodeIm2col == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUtensorMap map{};
  const CUresult status = thread.driver.cuTensorMapEncodeIm2col(
      &map, static_cast<CUtensorMapDataType>(type), rank, address, dimensions.data(),
      strides.data(), lower.data(), upper.data(), channels, pixels, elementStrides.data(),
      static_cast<CUtensorMapInterleave>(interleave), static_cast<CUtensorMapSwizzle>(swizzle),
      static_cast<CUtensorMapL2promotion>(promotion), static_cast<CUtensorMapFloatOOBfill>(fill));
  return answer(status, map, out);
}

CUresult cuTensorMapEncodeIm2colWide(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto [type, rank, interleave, mode, swizzle, promotion, fill, channels, pixels] =
      in.get<std::array<std::uint32_t, 9>>();
  const auto [lower, upper] = in.get<std::array<int, 2>>();
  auto* address = in.get<void*>();
  const auto dimensions = in.get<PerDimension<cuuint64_t>>();
  const auto strides = in.get<PerDimension<cuuint64_t>>();
  const auto elementStrides = in.get<PerDimension<cuuint32_t>>();
  if (!in.finished() || rank < 3 || rank > dimensions.size()) return thread.refuseFrame();
  if (thread.driver.cuTensorMapEncodeIm2colWide == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUtensorMap map{};
  const CUresult status = thread.driver.cuTensorMapEncodeIm2colWide(
      &map, static_cast<CUtensorMapDataType>(type), rank, address, dimensions.data(),
      strides.data(), lower, upper, channels, pixels, elementStrides.data(),
      static_cast<CUtensorMapInterleave>(interleave), static_cast<CUtensorMapIm2ColWideMode>(mode),
      static_cast<CUtensorMapSwizzle>(swizzle), static_cast<CUtensorMapL2promotion>(promotion),
      static_cast<CUtensorMapFloatOOBfill>(fill));
  return answer(status, map, out);
}

}  // namespace worker
