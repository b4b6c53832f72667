#include "native/simulator/array.h"

#include "native/simulator/attributes.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"

namespace simulator {
namespace {

/// The attributes that limit the extents of arrays of one shape; CU_DEVICE_ATTRIBUTE_MAX: none.
struct Limits {
  CUdevice_attribute width, height, depth;
};
constexpr CUdevice_attribute kNone = CU_DEVICE_ATTRIBUTE_MAX;

constexpr Limits kTexture[] = {
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, kNone, kNone},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT,
     kNone},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, kNone,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, kNone},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS}};

constexpr Limits kSurface[] = {
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, kNone, kNone},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT,
     kNone},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, kNone,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, kNone},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS}};

constexpr Limits kAlternate{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE,
                            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,
                            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE};
constexpr Limits kGather{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH,
                         CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, kNone};
constexpr Limits kMipmapped1d{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, kNone, kNone};
constexpr Limits kMipmapped2d{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH,
                              CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, kNone};

bool within(const Context& context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor,
            const Limits& limits) {
  const auto fits = [&](CUdevice_attribute attribute, std::size_t extent) {
    int most = 0;
    return attribute == kNone || (deviceAttribute(context.device.described, attribute, most) &&
                                  extent <= static_cast<std::size_t>(most));
  };
  return fits(limits.width, descriptor.Width) && fits(limits.height, descriptor.Height) &&
         fits(limits.depth, descriptor.Depth);
}

/// Whether a video frame has planes: pairs of rows and columns share their colour.
bool isFrame(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  return descriptor.NumChannels == 3 && descriptor.Height != 0 && descriptor.Width % 2 == 0 &&
         descriptor.Height % 2 == 0 && (descriptor.Flags & CUDA_ARRAY3D_CUBEMAP) == 0;
}

/// Extents and flags that name no shape at all.
bool contradictory(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  const auto& [width, height, depth, format, channels, flags] = descriptor;
  if (width == 0) return true;
  if (flags & CUDA_ARRAY3D_CUBEMAP) {
    const bool layered = flags & CUDA_ARRAY3D_LAYERED;
    return height != width || depth == 0 || (layered ? depth % 6 != 0 : depth != 6);
  }
  if (flags & CUDA_ARRAY3D_LAYERED) return depth == 0;
  return depth != 0 && height == 0;
}

}  // namespace

ImageShape shapeOf(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  const bool layered = descriptor.Flags & CUDA_ARRAY3D_LAYERED;
  if (descriptor.Flags & CUDA_ARRAY3D_CUBEMAP)
    return layered ? ImageShape::layeredCubemap : ImageShape::cubemap;
  if (layered) return descriptor.Height == 0 ? ImageShape::layered1d : ImageShape::layered2d;
  if (descriptor.Depth != 0) return ImageShape::d3;
  return descriptor.Height != 0 ? ImageShape::d2 : ImageShape::d1;
}

CUresult checkArray(const Context& context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor,
                    bool mipmapped) {
  constexpr unsigned kAccepted = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                 CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                                 CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT;
  constexpr unsigned kVideo = CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
  constexpr unsigned kLacking = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
  if ((descriptor.Flags & ~(kAccepted | kLacking | kVideo)) != 0 || !isKnown(descriptor.Format))
    return CUDA_ERROR_INVALID_VALUE;
  // Only arrays for video engines have planes.
  const bool video = (descriptor.Flags & kVideo) != 0;
  const bool planar = video && descriptor.Format == CU_AD_FORMAT_NV12 && !mipmapped;
  if ((descriptor.Flags & kLacking) != 0 || video != planar ||
      (formatOf(descriptor.Format) == nullptr && !planar))
    return CUDA_ERROR_NOT_SUPPORTED;
  if (contradictory(descriptor) ||
      !(planar ? isFrame(descriptor) : hasChannels(descriptor.Format, descriptor.NumChannels)))
    return CUDA_ERROR_INVALID_VALUE;
  const ImageShape shape = shapeOf(descriptor);
  bool fits = within(context, descriptor, kTexture[static_cast<std::size_t>(shape)]);
  if (shape == ImageShape::d3) fits |= within(context, descriptor, kAlternate);
  if (descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST)
    fits &= within(context, descriptor, kSurface[static_cast<std::size_t>(shape)]);
  if (descriptor.Flags & CUDA_ARRAY3D_TEXTURE_GATHER)
    fits &=
        descriptor.Height != 0 && shape != ImageShape::d3 && within(context, descriptor, kGather);
  if (mipmapped && shape == ImageShape::d1) fits &= within(context, descriptor, kMipmapped1d);
  if (mipmapped && shape == ImageShape::d2) fits &= within(context, descriptor, kMipmapped2d);
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simulator
