// Texture and surface references: state of the host that becomes an object when something is bound.
// A module's reference is a variable of 8 bytes, which holds the handle of that object.
#pragma once

#include <cstdint>
#include <mutex>

#include "native/simulator/driver_call.h"
#include "native/simulator/handles.h"
#include "native/simulator/texture.h"

namespace simulator {

struct Module;

struct TextureReference {
  explicit TextureReference(Context& context_) : context(context_), object{context_, {}, {}, {}} {}

  Context& context;
  const Module* module = nullptr;  ///< null: made by cuTexRefCreate
  std::uint64_t variable = 0;      ///< address of the module's variable
  TextureObject object;            ///< what it describes
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  unsigned channels = 1;
  bool bound = false;
  CUtexObject handle = 0;  ///< in the module's variable; 0: none
};

struct SurfaceReference {
  explicit SurfaceReference(Context& context_) : context(context_) {}

  Context& context;
  const Module* module = nullptr;
  std::uint64_t variable = 0;
  CUarray array = nullptr;
  CUsurfObject handle = 0;
};

/// Guards the state of all references, which calls change rarely.
std::mutex& referenceMutex();
/// Makes the object that the module's kernels see. Without a module there is none to make.
CUresult apply(TextureReference& reference);
/// Ends the references of a module.
void forgetReferences(const Module& module);

/// Runs body(Reference&) on the reference of a handle.
template <class Reference = TextureReference, class Handle, class Body>
CUresult onReference(Handle handle, Body&& body) {
  return inContext([&](Context&) -> CUresult {
    const auto found = Handles<Reference>::all().find(handle);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(referenceMutex());
    return body(*found);
  });
}

}  // namespace simulator
