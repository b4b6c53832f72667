// Texture and surface objects.
#include "native/simulator/texture.h"

#include <atomic>
#include <map>
#include <mutex>

#include "native/simulator/array.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/handles.h"

namespace simulator {
namespace {

/// All objects by handle. The images that launches use are made again after each change.
struct Objects {
  std::mutex mutex;
  std::uint64_t next = 1;
  std::map<std::uint64_t, TextureObject> textures, surfaces;
  Images images;
  std::shared_ptr<const Images> current;  ///< a copy of `images`; null: not made yet
};

Objects& objects() {
  static Objects& all = *new Objects;
  return all;
}

/// Whether an object shows the array, or a level of the mipmapped array that it belongs to.
bool shows(const TextureObject& object, const Array& array) {
  if (object.resource.resType == CU_RESOURCE_TYPE_ARRAY)
    return object.resource.res.array.hArray == handleOf<CUarray>(&array);
  if (object.resource.resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) return false;
  const auto found =
      Handles<MipmappedArray>::all().find(object.resource.res.mipmap.hMipmappedArray);
  return found == nullptr;
}

/// Removes objects from the images. Those whose array has ended keep their handle: it can still be
/// destroyed.
template <class Predicate>
void hide(Predicate&& hidden) {
  Objects& all = objects();
  const std::lock_guard lock(all.mutex);
  for (const auto& [handle, object] : all.textures) {
    if (hidden(object)) all.images.textures.erase(handle);
  }
  for (const auto& [handle, object] : all.surfaces) {
    if (hidden(object)) all.images.surfaces.erase(handle);
  }
  all.current = nullptr;
}

}  // namespace

std::shared_ptr<const Images> currentImages() {
  Objects& all = objects();
  const std::lock_guard lock(all.mutex);
  if (all.current == nullptr) all.current = std::make_shared<const Images>(all.images);
  return all.current;
}

CUresult addTexture(const TextureObject& object, CUtexObject& handle) {
  Texture texture;
  const CUresult status = makeTexture(object, texture);
  if (status != CUDA_SUCCESS) return status;
  Objects& all = objects();
  const std::lock_guard lock(all.mutex);
  handle = all.next++;
  all.textures.emplace(handle, object);
  all.images.textures.emplace(handle, std::move(texture));
  all.current = nullptr;
  return CUDA_SUCCESS;
}

CUresult removeTexture(CUtexObject handle) {
  Objects& all = objects();
  const std::lock_guard lock(all.mutex);
  all.textures.erase(handle);
  all.images.textures.erase(handle);
  all.current = nullptr;
  return CUDA_SUCCESS;
}

CUresult addSurface(const TextureObject& object, CUsurfObject& handle) {
  const CUDA_RESOURCE_DESC& resource = object.resource;
  if (resource.resType != CU_RESOURCE_TYPE_ARRAY || resource.flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto array = Handles<Array>::all().find(resource.res.array.hArray);
  if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (array->elementBytes() == 0) return CUDA_ERROR_NOT_SUPPORTED;
  Objects& all = objects();
  const std::lock_guard lock(all.mutex);
  handle = all.next++;
  all.surfaces.emplace(handle, object);
  all.images.surfaces.emplace(handle, imageOf(*array));
  all.current = nullptr;
  return CUDA_SUCCESS;
}

CUresult removeSurface(CUsurfObject handle) {
  Objects& all = objects();
  const std::lock_guard lock(all.mutex);
  if (all.surfaces.erase(handle) == 0) return CUDA_ERROR_INVALID_VALUE;
  all.images.surfaces.erase(handle);
  all.current = nullptr;
  return CUDA_SUCCESS;
}

void forgetImages(const Array& array) {
  hide([&](const TextureObject& object) { return shows(object, array); });
}

void forgetImages(const Context& context) {
  const auto of = [&](const TextureObject& object) { return &object.context == &context; };
  hide(of);
  Objects& all = objects();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.textures, [&](const auto& entry) { return of(entry.second); });
  std::erase_if(all.surfaces, [&](const auto& entry) { return of(entry.second); });
}

}  // namespace simulator

using namespace simulator;

namespace {

/// Runs body(const TextureObject&) on the object of a handle.
template <class Body>
CUresult onObject(std::map<std::uint64_t, TextureObject> Objects::*table, std::uint64_t handle,
                  Body&& body) {
  return inContext([&](Context&) -> CUresult {
    Objects& all = objects();
    const std::lock_guard lock(all.mutex);
    const auto found = (all.*table).find(handle);
    return found == (all.*table).end() ? CUDA_ERROR_INVALID_VALUE : body(found->second);
  });
}

template <class Value>
CUresult put(Value* out, const Value& value) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = value;
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_CALL cuTexObjectCreate(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc,
                              const CUDA_TEXTURE_DESC* pTexDesc,
                              const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  return inContext([&](Context& context) -> CUresult {
    if (pTexObject == nullptr || pResDesc == nullptr || pTexDesc == nullptr)
      return CUDA_ERROR_INVALID_VALUE;
    TextureObject object{context, *pResDesc, *pTexDesc, std::nullopt};
    if (pResViewDesc != nullptr) object.view = *pResViewDesc;
    return addTexture(object, *pTexObject);
  });
}

DRIVER_CALL cuTexObjectDestroy(CUtexObject texObject) {
  return inContext([&](Context&) { return removeTexture(texObject); });
}

DRIVER_CALL cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUtexObject texObject) {
  return onObject(&Objects::textures, texObject,
                  [&](const TextureObject& object) { return put(pResDesc, object.resource); });
}

DRIVER_CALL cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* pTexDesc, CUtexObject texObject) {
  return onObject(&Objects::textures, texObject,
                  [&](const TextureObject& object) { return put(pTexDesc, object.texture); });
}

DRIVER_CALL cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* pResViewDesc,
                                           CUtexObject texObject) {
  return onObject(&Objects::textures, texObject, [&](const TextureObject& object) {
    return put(pResViewDesc, object.view.value_or(CUDA_RESOURCE_VIEW_DESC{}));
  });
}

DRIVER_CALL cuSurfObjectCreate(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc) {
  return inContext([&](Context& context) -> CUresult {
    if (pSurfObject == nullptr || pResDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return addSurface({context, *pResDesc, {}, std::nullopt}, *pSurfObject);
  });
}

DRIVER_CALL cuSurfObjectDestroy(CUsurfObject surfObject) {
  return inContext([&](Context&) { return removeSurface(surfObject); });
}

DRIVER_CALL cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUsurfObject surfObject) {
  return onObject(&Objects::surfaces, surfObject,
                  [&](const TextureObject& object) { return put(pResDesc, object.resource); });
}

DRIVER_CALL cuDeviceGetTexture1DLinearMaxWidth(size_t* maxWidthInElements, CUarray_format format,
                                               unsigned numChannels, CUdevice dev) {
  return inDriver([&]() -> CUresult {
    const Device* device = findDevice(dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (maxWidthInElements == nullptr || !isKnown(format)) return CUDA_ERROR_INVALID_VALUE;
    if (formatOf(format) == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (!hasChannels(format, numChannels)) return CUDA_ERROR_INVALID_VALUE;
    *maxWidthInElements = linearTextureWidth(*device);
    return CUDA_SUCCESS;
  });
}
