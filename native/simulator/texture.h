// Texture and surface objects: images with the way in which kernels read them.
#pragma once

#include <memory>
#include <optional>

#include "cuda_abi.h"
#include "native/simulator/image.h"

namespace simulator {

struct Array;
struct Context;
class Device;

/// A texture or surface object, or the state of a texture reference.
struct TextureObject {
  Context& context;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};

/// The live objects, for launches. Never null.
std::shared_ptr<const Images> currentImages();

/// Checks the descriptions of a texture, and makes what the engine needs.
CUresult makeTexture(const TextureObject& object, Texture& texture);
/// Adds an object under a new handle.
CUresult addTexture(const TextureObject& object, CUtexObject& handle);
/// Also succeeds for a handle that names nothing, as a real driver does.
CUresult removeTexture(CUtexObject handle);
CUresult addSurface(const TextureObject& object, CUsurfObject& handle);
CUresult removeSurface(CUsurfObject handle);

/// Ends the objects of a context, and those that show an array that ends.
void forgetImages(const Context& context);
void forgetImages(const Array& array);

/// The most elements of a texture in linear memory.
std::size_t linearTextureWidth(const Device& device);
/// The image of an array.
Image imageOf(const Array& array);

}  // namespace simulator
