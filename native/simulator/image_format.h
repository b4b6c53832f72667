// The formats of elements of images.
#pragma once

#include <cstdint>

#include "cuda_abi.h"

namespace simulator {

/// How one channel is stored.
struct ImageFormat {
  enum class Kind : std::uint8_t { unsignedInteger, signedInteger, floatingPoint };
  Kind kind;
  std::uint8_t bytes;         ///< of a channel
  std::uint8_t channels = 0;  ///< that the format prescribes; 0: any number
  bool normalized = false;    ///< the format itself asks for values from 0 or -1 to 1
};

/// Null: the simulated GPU does not have the format (compressed blocks, video planes).
inline const ImageFormat* formatOf(CUarray_format format) {
  using Kind = ImageFormat::Kind;
  static constexpr ImageFormat u8{Kind::unsignedInteger, 1}, u16{Kind::unsignedInteger, 2},
      u32{Kind::unsignedInteger, 4}, s8{Kind::signedInteger, 1}, s16{Kind::signedInteger, 2},
      s32{Kind::signedInteger, 4}, f16{Kind::floatingPoint, 2}, f32{Kind::floatingPoint, 4};
  static constexpr ImageFormat normalized[] = {
      {Kind::unsignedInteger, 1, 1, true}, {Kind::unsignedInteger, 1, 2, true},
      {Kind::unsignedInteger, 1, 4, true}, {Kind::unsignedInteger, 2, 1, true},
      {Kind::unsignedInteger, 2, 2, true}, {Kind::unsignedInteger, 2, 4, true},
      {Kind::signedInteger, 1, 1, true},   {Kind::signedInteger, 1, 2, true},
      {Kind::signedInteger, 1, 4, true},   {Kind::signedInteger, 2, 1, true},
      {Kind::signedInteger, 2, 2, true},   {Kind::signedInteger, 2, 4, true}};
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: return &u8;
    case CU_AD_FORMAT_UNSIGNED_INT16: return &u16;
    case CU_AD_FORMAT_UNSIGNED_INT32: return &u32;
    case CU_AD_FORMAT_SIGNED_INT8: return &s8;
    case CU_AD_FORMAT_SIGNED_INT16: return &s16;
    case CU_AD_FORMAT_SIGNED_INT32: return &s32;
    case CU_AD_FORMAT_HALF: return &f16;
    case CU_AD_FORMAT_FLOAT: return &f32;
    default: break;
  }
  return format >= CU_AD_FORMAT_UNORM_INT8X1 && format <= CU_AD_FORMAT_SNORM_INT16X4
             ? &normalized[format - CU_AD_FORMAT_UNORM_INT8X1]
             : nullptr;
}

/// Whether the format exists and may have this number of channels.
inline bool hasChannels(CUarray_format format, unsigned channels) {
  const ImageFormat* found = formatOf(format);
  if (found == nullptr || (channels != 1 && channels != 2 && channels != 4)) return false;
  return found->channels == 0 || found->channels == channels;
}

/// Whether CUDA has the format, although the simulated GPU may not.
inline bool isKnown(CUarray_format format) {
  return formatOf(format) != nullptr || format == CU_AD_FORMAT_UNORM_INT_101010_2 ||
         (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_Y410) ||
         (format >= CU_AD_FORMAT_NV12 && format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar);
}

}  // namespace simulator
