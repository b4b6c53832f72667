// CUDA arrays: images in device memory whose addresses programs never see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/image.h"

namespace simulator {

struct Context;

/// Elements lie in rows without gaps, and rows in layers without gaps.
struct Array {
  Array(Context& context_, const CUDA_ARRAY3D_DESCRIPTOR& descriptor_)
      : context(context_), descriptor(descriptor_) {}

  Context& context;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor;
  std::uint64_t address = 0;
  bool isPart = false;  ///< a level or plane of another array, which owns the memory
  std::vector<std::shared_ptr<Array>> planes;  ///< of a video frame, which has no elements itself

  /// 0 for a video frame.
  std::size_t elementBytes() const {
    const ImageFormat* format = formatOf(descriptor.Format);
    return format == nullptr ? 0 : std::size_t{format->bytes} * descriptor.NumChannels;
  }
  std::size_t rowBytes() const { return descriptor.Width * elementBytes(); }
  std::size_t rows() const { return descriptor.Height == 0 ? 1 : descriptor.Height; }
  std::size_t layers() const { return descriptor.Depth == 0 ? 1 : descriptor.Depth; }
  std::size_t layerBytes() const { return rowBytes() * rows(); }
  std::size_t bytes() const { return layerBytes() * layers(); }
};

struct MipmappedArray {
  MipmappedArray(Context& context_, const CUDA_ARRAY3D_DESCRIPTOR& descriptor_)
      : context(context_), descriptor(descriptor_) {}

  Context& context;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor;
  std::vector<std::shared_ptr<Array>> levels;
};

ImageShape shapeOf(const CUDA_ARRAY3D_DESCRIPTOR& descriptor);
/// Whether arrays of this descriptor exist on the device: extents, format, channels, flags.
CUresult checkArray(const Context& context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor,
                    bool mipmapped);

}  // namespace simulator
