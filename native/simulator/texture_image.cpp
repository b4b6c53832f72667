// From resource descriptors to images and samplers.
#include <algorithm>

#include "native/simulator/array.h"
#include "native/simulator/attributes.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/handles.h"
#include "native/simulator/texture.h"

namespace simulator {
namespace {

std::size_t limit(const Device& device, CUdevice_attribute attribute) {
  int value = 0;
  deviceAttribute(device.described, attribute, value);
  return static_cast<std::size_t>(value);
}

ImageLevel levelOf(const Array& array) {
  return {array.address,
          static_cast<std::uint32_t>(array.descriptor.Width),
          static_cast<std::uint32_t>(array.rows()),
          static_cast<std::uint32_t>(array.layers()),
          array.rowBytes(),
          array.layerBytes()};
}

CUresult fromMemory(const Context& context, CUarray_format format, unsigned channels,
                    CUdeviceptr address, Image& image) {
  if (!isKnown(format)) return CUDA_ERROR_INVALID_VALUE;
  if (formatOf(format) == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const std::size_t alignment = limit(context.device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  if (!hasChannels(format, channels) || address == 0 || address % alignment != 0)
    return CUDA_ERROR_INVALID_VALUE;
  image.format = *formatOf(format);
  image.channels = channels;
  image.inMemory = true;
  return CUDA_SUCCESS;
}

CUresult linearImage(const Context& context, const CUDA_RESOURCE_DESC& resource, Image& image) {
  const auto& linear = resource.res.linear;
  const CUresult status =
      fromMemory(context, linear.format, linear.numChannels, linear.devPtr, image);
  if (status != CUDA_SUCCESS) return status;
  const std::size_t width = linear.sizeInBytes / image.elementBytes();
  if (width > linearTextureWidth(context.device)) return CUDA_ERROR_INVALID_VALUE;
  image.shape = ImageShape::linear;
  image.levels = {{linear.devPtr, static_cast<std::uint32_t>(width), 1, 1, linear.sizeInBytes,
                   linear.sizeInBytes}};
  return CUDA_SUCCESS;
}

CUresult pitchedImage(const Context& context, const CUDA_RESOURCE_DESC& resource, Image& image) {
  const auto& plane = resource.res.pitch2D;
  const CUresult status = fromMemory(context, plane.format, plane.numChannels, plane.devPtr, image);
  if (status != CUDA_SUCCESS) return status;
  if (plane.width == 0 || plane.height == 0 ||
      plane.width > limit(context.device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ||
      plane.height > limit(context.device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ||
      plane.pitchInBytes >
          limit(context.device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH) ||
      plane.pitchInBytes % limit(context.device, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) !=
          0 ||
      plane.pitchInBytes < plane.width * image.elementBytes())
    return CUDA_ERROR_INVALID_VALUE;
  image.shape = ImageShape::d2;
  image.levels = {{plane.devPtr, static_cast<std::uint32_t>(plane.width),
                   static_cast<std::uint32_t>(plane.height), 1, plane.pitchInBytes,
                   plane.pitchInBytes * plane.height}};
  return CUDA_SUCCESS;
}

CUresult makeImage(const Context& context, const CUDA_RESOURCE_DESC& resource, Image& image) {
  if (resource.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      const auto array = Handles<Array>::all().find(resource.res.array.hArray);
      if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (array->elementBytes() == 0) return CUDA_ERROR_NOT_SUPPORTED;
      image = imageOf(*array);
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      const auto array = Handles<MipmappedArray>::all().find(resource.res.mipmap.hMipmappedArray);
      if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
      image = imageOf(*array->levels.front());
      image.levels.clear();
      for (const auto& level : array->levels) image.levels.push_back(levelOf(*level));
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR: return linearImage(context, resource, image);
    case CU_RESOURCE_TYPE_PITCH2D: return pitchedImage(context, resource, image);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/// The format of a view, which keeps the size of elements. Blocks of compressed ones do not exist
/// here.
CUresult applyFormat(CUresourceViewFormat view, Image& image) {
  static constexpr CUarray_format kFormats[] = {
      CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8,    CU_AD_FORMAT_UNSIGNED_INT16,
      CU_AD_FORMAT_SIGNED_INT16,  CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
      CU_AD_FORMAT_HALF,          CU_AD_FORMAT_FLOAT};
  if (view == CU_RES_VIEW_FORMAT_NONE) return CUDA_SUCCESS;
  if (view > CU_RES_VIEW_FORMAT_UNSIGNED_BC7) return CUDA_ERROR_INVALID_VALUE;
  if (view > CU_RES_VIEW_FORMAT_FLOAT_4X32) return CUDA_ERROR_NOT_SUPPORTED;
  const unsigned number = view - CU_RES_VIEW_FORMAT_UINT_1X8;
  const ImageFormat& format = *formatOf(kFormats[number / 3]);
  const unsigned channels = 1u << number % 3;
  if (format.bytes * channels != image.elementBytes()) return CUDA_ERROR_INVALID_VALUE;
  image.format = format;
  image.channels = channels;
  return CUDA_SUCCESS;
}

/// A view of uncompressed elements keeps the extent, layers included.
bool keepsExtent(const CUDA_RESOURCE_VIEW_DESC& view, const ImageLevel& whole) {
  return view.width == whole.width && std::max<std::size_t>(view.height, 1) == whole.height &&
         std::max<std::size_t>(view.depth, 1) == whole.depth;
}

CUresult applyView(const CUDA_RESOURCE_VIEW_DESC& view, Image& image) {
  if (image.inMemory || !keepsExtent(view, image.levels.front())) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = applyFormat(view.format, image);
  if (status != CUDA_SUCCESS) return status;
  if (view.firstMipmapLevel > view.lastMipmapLevel || view.lastMipmapLevel >= image.levels.size() ||
      view.firstLayer > view.lastLayer)
    return CUDA_ERROR_INVALID_VALUE;
  image.levels.assign(image.levels.begin() + view.firstMipmapLevel,
                      image.levels.begin() + view.lastMipmapLevel + 1);
  const bool layered = image.shape != ImageShape::d1 && image.shape != ImageShape::d2 &&
                       image.shape != ImageShape::d3;
  if (!layered) return view.lastLayer == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (view.lastLayer >= image.levels.front().depth) return CUDA_ERROR_INVALID_VALUE;
  for (ImageLevel& level : image.levels) {
    level.address += view.firstLayer * level.layerBytes;
    level.depth = view.lastLayer - view.firstLayer + 1;
  }
  return CUDA_SUCCESS;
}

CUresult makeSampler(const CUDA_TEXTURE_DESC& given, Sampler& sampler) {
  constexpr unsigned kFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
                              CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION |
                              CU_TRSF_SEAMLESS_CUBEMAP;
  if ((given.flags & ~kFlags) != 0 || given.filterMode > CU_TR_FILTER_MODE_LINEAR ||
      given.mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (given.addressMode[axis] > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    sampler.address[axis] = given.addressMode[axis];
  }
  sampler.filter = given.filterMode;
  sampler.mipmapFilter = given.mipmapFilterMode;
  sampler.integers = given.flags & CU_TRSF_READ_AS_INTEGER;
  sampler.normalizedCoordinates = given.flags & CU_TRSF_NORMALIZED_COORDINATES;
  sampler.srgb = given.flags & CU_TRSF_SRGB;
  sampler.seamless = given.flags & CU_TRSF_SEAMLESS_CUBEMAP;
  sampler.levelBias = given.mipmapLevelBias;
  sampler.lowestLevel = given.minMipmapLevelClamp;
  sampler.highestLevel = given.maxMipmapLevelClamp;
  std::copy_n(given.borderColor, 4, sampler.border.begin());
  return CUDA_SUCCESS;
}

}  // namespace

std::size_t linearTextureWidth(const Device& device) {
  return limit(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
}

Image imageOf(const Array& array) {
  Image image;
  image.shape = shapeOf(array.descriptor);
  image.format = *formatOf(array.descriptor.Format);
  image.channels = array.descriptor.NumChannels;
  image.levels = {levelOf(array)};
  return image;
}

CUresult makeTexture(const TextureObject& object, Texture& texture) {
  CUresult status = makeImage(object.context, object.resource, texture.image);
  if (status == CUDA_SUCCESS && object.view) status = applyView(*object.view, texture.image);
  return status == CUDA_SUCCESS ? makeSampler(object.texture, texture.sampler) : status;
}

}  // namespace simulator
