// Texture and surface objects, and the arrays of texture references. Linear memory needs no check:
// a kernel may use any address of its context, so a texture gives it nothing more.
#include <array>

#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

using wire::HandleKind;

/// Replaces the handle of an array by its object.
CUresult resolve(const Thread& thread, CUDA_RESOURCE_DESC& resource) {
  auto& array = resource.res.array.hArray;
  auto& mipmap = resource.res.mipmap.hMipmappedArray;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return thread.find<CUarray>(reinterpret_cast<std::uint64_t>(array), &array);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return thread.find<CUmipmappedArray>(reinterpret_cast<std::uint64_t>(mipmap), &mipmap);
    case CU_RESOURCE_TYPE_LINEAR:
    case CU_RESOURCE_TYPE_PITCH2D: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/// The opposite. An array that has been destroyed becomes null.
void hide(const Thread& thread, CUDA_RESOURCE_DESC& resource) {
  const auto& handles = thread.session.handles;
  auto& array = resource.res.array.hArray;
  auto& mipmap = resource.res.mipmap.hMipmappedArray;
  if (resource.resType == CU_RESOURCE_TYPE_ARRAY)
    array = reinterpret_cast<CUarray>(handles.handleOf(HandleKind::array, array));
  if (resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
    mipmap =
        reinterpret_cast<CUmipmappedArray>(handles.handleOf(HandleKind::mipmappedArray, mipmap));
}

template <class Create>
CUresult create(Thread& thread, HandleKind kind, CUDA_RESOURCE_DESC& resource, wire::Encoder& out,
                Create create) {
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult status = resolve(thread, resource); status != CUDA_SUCCESS) return status;
  unsigned long long object = 0;
  if (const CUresult status = create(&object); status != CUDA_SUCCESS) return status;
  thread.session.textureObjects.created(kind, thread.owner(), object);
  out.put(object);
  return CUDA_SUCCESS;
}

bool lives(const Thread& thread, HandleKind kind, unsigned long long object) {
  return thread.session.textureObjects.lives(kind, thread.owner(), object);
}

/// The object is forgotten before the driver may give its value to another thread. The driver
/// accepts a texture that does not exist, null included; here it never gets such a value.
template <class Destroy>
CUresult destroy(Thread& thread, HandleKind kind, unsigned long long object, Destroy destroy) {
  if (!lives(thread, kind, object))
    return kind == HandleKind::texture ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  const CUcontext context = thread.owner();
  thread.session.textureObjects.destroyed(kind, context, object);
  const CUresult status = destroy(object);
  if (status != CUDA_SUCCESS) thread.session.textureObjects.created(kind, context, object);
  return status;
}

template <class Ask>
CUresult describe(Thread& thread, HandleKind kind, wire::Decoder& in, wire::Encoder& out, Ask ask) {
  const auto object = in.get<unsigned long long>();
  if (!in.finished()) return thread.refuseFrame();
  if (!lives(thread, kind, object)) return CUDA_ERROR_INVALID_VALUE;
  CUDA_RESOURCE_DESC resource{};
  if (const CUresult status = ask(&resource, object); status != CUDA_SUCCESS) return status;
  hide(thread, resource);
  out.put(resource);
  return CUDA_SUCCESS;
}

/// A reference keeps an array that the program has destroyed. Such an array gets no new handle.
template <class Array>
CUresult known(const Thread& thread, CUresult status, Array array) {
  const bool isKnown = thread.session.handles.handleOf(HandleOf<Array>::kind, array) != 0;
  return status != CUDA_SUCCESS || isKnown ? status : CUDA_ERROR_INVALID_VALUE;
}

using Colour = std::array<float, 4>;

}  // namespace

CUresult cuTexObjectCreate(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  auto resource = in.get<CUDA_RESOURCE_DESC>();
  const auto texture = in.get<CUDA_TEXTURE_DESC>();
  const auto view = in.getArray<CUDA_RESOURCE_VIEW_DESC>(1);
  if (!in.finished()) return thread.refuseFrame();
  return create(thread, HandleKind::texture, resource, out, [&](CUtexObject* object) {
    return thread.driver.cuTexObjectCreate(object, &resource, &texture,
                                           view.empty() ? nullptr : view.data());
  });
}

CUresult cuSurfObjectCreate(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  auto resource = in.get<CUDA_RESOURCE_DESC>();
  if (!in.finished()) return thread.refuseFrame();
  return create(thread, HandleKind::surface, resource, out, [&](CUsurfObject* object) {
    return thread.driver.cuSurfObjectCreate(object, &resource);
  });
}

CUresult cuTexObjectDestroy(Thread& thread, CUtexObject texObject) {
  return destroy(thread, HandleKind::texture, texObject, thread.driver.cuTexObjectDestroy);
}

CUresult cuSurfObjectDestroy(Thread& thread, CUsurfObject surfObject) {
  return destroy(thread, HandleKind::surface, surfObject, thread.driver.cuSurfObjectDestroy);
}

CUresult cuTexObjectGetResourceDesc(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return describe(thread, HandleKind::texture, in, out, thread.driver.cuTexObjectGetResourceDesc);
}

CUresult cuSurfObjectGetResourceDesc(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return describe(thread, HandleKind::surface, in, out, thread.driver.cuSurfObjectGetResourceDesc);
}

CUresult cuTexObjectGetTextureDesc(Thread& thread, CUDA_TEXTURE_DESC* pTexDesc,
                                   CUtexObject texObject) {
  if (!lives(thread, HandleKind::texture, texObject)) return CUDA_ERROR_INVALID_VALUE;
  return thread.driver.cuTexObjectGetTextureDesc(pTexDesc, texObject);
}

CUresult cuTexObjectGetResourceViewDesc(Thread& thread, CUDA_RESOURCE_VIEW_DESC* pResViewDesc,
                                        CUtexObject texObject) {
  if (!lives(thread, HandleKind::texture, texObject)) return CUDA_ERROR_INVALID_VALUE;
  return thread.driver.cuTexObjectGetResourceViewDesc(pResViewDesc, texObject);
}

CUresult cuTexRefGetArray(Thread& thread, CUarray* phArray, CUtexref hTexRef) {
  const CUresult status = thread.driver.cuTexRefGetArray(phArray, hTexRef);
  return known(thread, status, *phArray);
}

CUresult cuTexRefGetMipmappedArray(Thread& thread, CUmipmappedArray* phMipmappedArray,
                                   CUtexref hTexRef) {
  const CUresult status = thread.driver.cuTexRefGetMipmappedArray(phMipmappedArray, hTexRef);
  return known(thread, status, *phMipmappedArray);
}

CUresult cuSurfRefGetArray(Thread& thread, CUarray* phArray, CUsurfref hSurfRef) {
  const CUresult status = thread.driver.cuSurfRefGetArray(phArray, hSurfRef);
  return known(thread, status, *phArray);
}

CUresult cuTexRefSetBorderColor(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  auto colour = in.get<Colour>();
  if (!in.finished()) return thread.refuseFrame();
  CUtexref reference = nullptr;
  if (const CUresult status = thread.find<CUtexref>(handle, &reference); status != CUDA_SUCCESS)
    return status;
  return thread.driver.cuTexRefSetBorderColor(reference, colour.data());
}

CUresult cuTexRefGetBorderColor(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUtexref reference = nullptr;
  if (const CUresult status = thread.find<CUtexref>(handle, &reference); status != CUDA_SUCCESS)
    return status;
  Colour colour{};
  const CUresult status = thread.driver.cuTexRefGetBorderColor(colour.data(), reference);
  out.put(colour);
  return status;
}

}  // namespace worker
