#include "native/simulator/texture_reference.h"

#include <cstring>

#include "native/simulator/array.h"
#include "native/simulator/handles.h"
#include "native/simulator/module.h"

namespace simulator {
namespace {

template <class Reference>
void forget(const Module& module, CUresult (*remove)(unsigned long long)) {
  for (const auto& reference : Handles<Reference>::all().where(
           [&](const Reference& candidate) { return candidate.module == &module; })) {
    if (reference->handle != 0) remove(reference->handle);
    Handles<Reference>::all().remove(reference.get());
  }
}

/// Kernels that were launched before still read the old handle, so they are waited for.
void publish(Context& context, std::uint64_t variable, std::uint64_t handle) {
  synchronize(context);
  std::memcpy(reinterpret_cast<void*>(variable), &handle, sizeof handle);
}

/// Binds a resource. A reference without a module is checked, too.
CUresult bind(TextureReference& reference, const CUDA_RESOURCE_DESC& resource) {
  TextureObject object = reference.object;
  object.resource = resource;
  Texture unused;
  const CUresult status = makeTexture(object, unused);
  if (status != CUDA_SUCCESS) return status;
  reference.object.resource = resource;
  reference.bound = true;
  return apply(reference);
}

/// Binds an array, whose format the reference takes over.
template <class Object, class Handle>
CUresult bindArray(CUtexref texture, Handle handle, unsigned flags,
                   const CUDA_RESOURCE_DESC& resource) {
  return onReference(texture, [&](TextureReference& reference) -> CUresult {
    const auto array = Handles<Object>::all().find(handle);
    if (array == nullptr || flags != CU_TRSA_OVERRIDE_FORMAT) return CUDA_ERROR_INVALID_VALUE;
    reference.format = array->descriptor.Format;
    reference.channels = array->descriptor.NumChannels;
    return bind(reference, resource);
  });
}

/// Gives read(resource) of what is bound, if it is of that type.
template <class Handle, class Read>
CUresult boundArray(CUtexref texture, CUresourcetype type, Handle* out, Read&& read) {
  return onReference(texture, [&](TextureReference& reference) -> CUresult {
    if (out == nullptr || !reference.bound || reference.object.resource.resType != type)
      return CUDA_ERROR_INVALID_VALUE;
    *out = read(reference.object.resource);
    return CUDA_SUCCESS;
  });
}

/// The variable of a module's reference, and the reference that was made for it before.
template <class Reference, class Handle>
CUresult ofModule(Handle* out, CUmodule hmod, const char* name) {
  return inContext([&](Context&) -> CUresult {
    const auto module = Handles<Module>::all().find(hmod);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const int index = module->variable(name);
    if (index < 0 || !module->program->variables()[index].opaque) return CUDA_ERROR_NOT_FOUND;
    const std::uint64_t variable = module->variables[index];
    const std::lock_guard lock(referenceMutex());
    const auto known = Handles<Reference>::all().where(
        [&](const Reference& candidate) { return candidate.variable == variable; });
    if (!known.empty()) {
      *out = handleOf<Handle>(known.front().get());
      return CUDA_SUCCESS;
    }
    auto made = std::make_shared<Reference>(module->context);
    made->module = module.get();
    made->variable = variable;
    *out = handleOf<Handle>(made.get());
    Handles<Reference>::all().add(std::move(made));
    return CUDA_SUCCESS;
  });
}

}  // namespace

std::mutex& referenceMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

CUresult apply(TextureReference& reference) {
  if (reference.bound && reference.object.resource.resType == CU_RESOURCE_TYPE_LINEAR) {
    reference.object.resource.res.linear.format = reference.format;
    reference.object.resource.res.linear.numChannels = reference.channels;
  }
  if (!reference.bound || reference.variable == 0) return CUDA_SUCCESS;
  CUtexObject made = 0;
  const CUresult status = addTexture(reference.object, made);
  if (status != CUDA_SUCCESS) return status;
  publish(reference.context, reference.variable, made);
  if (reference.handle != 0) removeTexture(reference.handle);
  reference.handle = made;
  return CUDA_SUCCESS;
}

void forgetReferences(const Module& module) {
  const std::lock_guard lock(referenceMutex());
  forget<TextureReference>(module, removeTexture);
  forget<SurfaceReference>(module, removeSurface);
}

}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuModuleGetTexRef(CUtexref* pTexRef, CUmodule hmod, const char* name) {
  return ofModule<TextureReference>(pTexRef, hmod, name);
}
DRIVER_CALL cuModuleGetSurfRef(CUsurfref* pSurfRef, CUmodule hmod, const char* name) {
  return ofModule<SurfaceReference>(pSurfRef, hmod, name);
}

DRIVER_CALL cuTexRefCreate(CUtexref* pTexRef) {
  return inContext([&](Context& context) -> CUresult {
    if (pTexRef == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_shared<TextureReference>(context);
    *pTexRef = handleOf<CUtexref>(made.get());
    Handles<TextureReference>::all().add(std::move(made));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuTexRefDestroy(CUtexref hTexRef) {
  return inContext([&](Context&) -> CUresult {
    const auto found = Handles<TextureReference>::all().find(hTexRef);
    if (found == nullptr || found->module != nullptr) return CUDA_ERROR_INVALID_VALUE;
    Handles<TextureReference>::all().remove(hTexRef);
    return CUDA_SUCCESS;
  });
}

// Modules of today bind all their references, so the parameter adds nothing.
DRIVER_CALL cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef) {
  return onReference(hTexRef, [&](TextureReference& reference) -> CUresult {
    std::shared_ptr<Function> function;
    if (texunit != CU_PARAM_TR_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
    return findFunction(reference.context, hfunc, function);
  });
}

DRIVER_CALL cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = hArray;
  return bindArray<Array>(hTexRef, hArray, Flags, resource);
}

DRIVER_CALL cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray,
                                      unsigned int Flags) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = hMipmappedArray;
  return bindArray<MipmappedArray>(hTexRef, hMipmappedArray, Flags, resource);
}

DRIVER_CALL cuTexRefSetAddress_v2(size_t* ByteOffset, CUtexref hTexRef, CUdeviceptr dptr,
                                  size_t bytes) {
  return onReference(hTexRef, [&](TextureReference& reference) -> CUresult {
    constexpr std::size_t kAlignment = 512;  // CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT
    const std::size_t offset = dptr % kAlignment;
    if (offset != 0 && ByteOffset == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {dptr - offset, reference.format, reference.channels, bytes + offset};
    const CUresult status = bind(reference, resource);
    if (status == CUDA_SUCCESS && ByteOffset != nullptr) *ByteOffset = offset;
    return status;
  });
}

DRIVER_CALL cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR* desc,
                                    CUdeviceptr dptr, size_t Pitch) {
  return onReference(hTexRef, [&](TextureReference& reference) -> CUresult {
    if (desc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D = {dptr,        desc->Format, desc->NumChannels,
                            desc->Width, desc->Height, Pitch};
    reference.format = desc->Format;
    reference.channels = desc->NumChannels;
    return bind(reference, resource);
  });
}
DRIVER_CALL cuTexRefSetAddress2D_v2(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR* desc,
                                    CUdeviceptr dptr, size_t Pitch) {
  return cuTexRefSetAddress2D_v3(hTexRef, desc, dptr, Pitch);
}

DRIVER_CALL cuTexRefGetAddress_v2(CUdeviceptr* pdptr, CUtexref hTexRef) {
  return onReference(hTexRef, [&](TextureReference& reference) -> CUresult {
    const CUDA_RESOURCE_DESC& resource = reference.object.resource;
    const bool linear = resource.resType == CU_RESOURCE_TYPE_LINEAR;
    if (pdptr == nullptr || !reference.bound ||
        (!linear && resource.resType != CU_RESOURCE_TYPE_PITCH2D))
      return CUDA_ERROR_INVALID_VALUE;
    *pdptr = linear ? resource.res.linear.devPtr : resource.res.pitch2D.devPtr;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuTexRefGetArray(CUarray* phArray, CUtexref hTexRef) {
  return boundArray(hTexRef, CU_RESOURCE_TYPE_ARRAY, phArray,
                    [](const CUDA_RESOURCE_DESC& bound) { return bound.res.array.hArray; });
}

DRIVER_CALL cuTexRefGetMipmappedArray(CUmipmappedArray* phMipmappedArray, CUtexref hTexRef) {
  return boundArray(
      hTexRef, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, phMipmappedArray,
      [](const CUDA_RESOURCE_DESC& bound) { return bound.res.mipmap.hMipmappedArray; });
}

DRIVER_CALL cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags) {
  return onReference<SurfaceReference>(hSurfRef, [&](SurfaceReference& reference) -> CUresult {
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = hArray;
    CUsurfObject made = 0;
    const CUresult status = addSurface({reference.context, resource, {}, {}}, made);
    if (status != CUDA_SUCCESS) return status;
    publish(reference.context, reference.variable, made);
    if (reference.handle != 0) removeSurface(reference.handle);
    reference.handle = made;
    reference.array = hArray;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuSurfRefGetArray(CUarray* phArray, CUsurfref hSurfRef) {
  return onReference<SurfaceReference>(hSurfRef, [&](SurfaceReference& reference) -> CUresult {
    if (phArray == nullptr || reference.array == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *phArray = reference.array;
    return CUDA_SUCCESS;
  });
}
