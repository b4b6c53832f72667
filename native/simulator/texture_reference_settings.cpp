// How texture references are read: formats, address modes, filters, levels.
#include <algorithm>

#include "native/simulator/texture_reference.h"

using namespace simulator;

namespace {

/// Changes how a reference is read.
template <class Change>
CUresult change(CUtexref handle, bool valid, Change&& change) {
  return onReference(handle, [&](TextureReference& reference) -> CUresult {
    if (!valid) return CUDA_ERROR_INVALID_VALUE;
    change(reference);
    return apply(reference);
  });
}

template <class Value>
CUresult ask(CUtexref handle, Value* out, Value (*answer)(const TextureReference&)) {
  return onReference(handle, [&](TextureReference& reference) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = answer(reference);
    return CUDA_SUCCESS;
  });
}

}  // namespace

DRIVER_CALL cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents) {
  const bool valid =
      NumPackedComponents > 0 && hasChannels(fmt, static_cast<unsigned>(NumPackedComponents));
  return change(hTexRef, valid, [&](TextureReference& reference) {
    reference.format = fmt;
    reference.channels = static_cast<unsigned>(NumPackedComponents);
  });
}

DRIVER_CALL cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am) {
  return change(
      hTexRef, dim >= 0 && dim < 3 && am <= CU_TR_ADDRESS_MODE_BORDER,
      [&](TextureReference& reference) { reference.object.texture.addressMode[dim] = am; });
}

DRIVER_CALL cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm) {
  return change(hTexRef, fm <= CU_TR_FILTER_MODE_LINEAR,
                [&](TextureReference& reference) { reference.object.texture.filterMode = fm; });
}

DRIVER_CALL cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm) {
  return change(hTexRef, fm <= CU_TR_FILTER_MODE_LINEAR, [&](TextureReference& reference) {
    reference.object.texture.mipmapFilterMode = fm;
  });
}

DRIVER_CALL cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias) {
  return change(hTexRef, true, [&](TextureReference& reference) {
    reference.object.texture.mipmapLevelBias = bias;
  });
}

DRIVER_CALL cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp,
                                        float maxMipmapLevelClamp) {
  return change(hTexRef, true, [&](TextureReference& reference) {
    reference.object.texture.minMipmapLevelClamp = minMipmapLevelClamp;
    reference.object.texture.maxMipmapLevelClamp = maxMipmapLevelClamp;
  });
}

DRIVER_CALL cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso) {
  return change(hTexRef, true, [&](TextureReference& reference) {
    reference.object.texture.maxAnisotropy = maxAniso;
  });
}

DRIVER_CALL cuTexRefSetBorderColor(CUtexref hTexRef, float* pBorderColor) {
  return change(hTexRef, pBorderColor != nullptr, [&](TextureReference& reference) {
    std::copy_n(pBorderColor, 4, reference.object.texture.borderColor);
  });
}

DRIVER_CALL cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags) {
  constexpr unsigned kKnown = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
                              CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  return change(hTexRef, (Flags & ~kKnown) == 0,
                [&](TextureReference& reference) { reference.object.texture.flags = Flags; });
}

DRIVER_CALL cuTexRefGetAddressMode(CUaddress_mode* pam, CUtexref hTexRef, int dim) {
  return onReference(hTexRef, [&](TextureReference& reference) -> CUresult {
    if (pam == nullptr || dim < 0 || dim > 2) return CUDA_ERROR_INVALID_VALUE;
    *pam = reference.object.texture.addressMode[dim];
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuTexRefGetFilterMode(CUfilter_mode* pfm, CUtexref hTexRef) {
  return ask<CUfilter_mode>(hTexRef, pfm, [](const TextureReference& reference) {
    return reference.object.texture.filterMode;
  });
}

DRIVER_CALL cuTexRefGetFormat(CUarray_format* pFormat, int* pNumChannels, CUtexref hTexRef) {
  return onReference(hTexRef, [&](TextureReference& reference) -> CUresult {
    if (pFormat == nullptr && pNumChannels == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (pFormat != nullptr) *pFormat = reference.format;
    if (pNumChannels != nullptr) *pNumChannels = static_cast<int>(reference.channels);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuTexRefGetMipmapFilterMode(CUfilter_mode* pfm, CUtexref hTexRef) {
  return ask<CUfilter_mode>(hTexRef, pfm, [](const TextureReference& reference) {
    return reference.object.texture.mipmapFilterMode;
  });
}

DRIVER_CALL cuTexRefGetMipmapLevelBias(float* pbias, CUtexref hTexRef) {
  return ask<float>(hTexRef, pbias, [](const TextureReference& reference) {
    return reference.object.texture.mipmapLevelBias;
  });
}

DRIVER_CALL cuTexRefGetMipmapLevelClamp(float* pminMipmapLevelClamp, float* pmaxMipmapLevelClamp,
                                        CUtexref hTexRef) {
  return onReference(hTexRef, [&](TextureReference& reference) -> CUresult {
    if (pminMipmapLevelClamp == nullptr || pmaxMipmapLevelClamp == nullptr)
      return CUDA_ERROR_INVALID_VALUE;
    *pminMipmapLevelClamp = reference.object.texture.minMipmapLevelClamp;
    *pmaxMipmapLevelClamp = reference.object.texture.maxMipmapLevelClamp;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuTexRefGetMaxAnisotropy(int* pmaxAniso, CUtexref hTexRef) {
  return ask<int>(hTexRef, pmaxAniso, [](const TextureReference& reference) {
    return static_cast<int>(reference.object.texture.maxAnisotropy);
  });
}

DRIVER_CALL cuTexRefGetBorderColor(float* pBorderColor, CUtexref hTexRef) {
  return onReference(hTexRef, [&](TextureReference& reference) -> CUresult {
    if (pBorderColor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::copy_n(reference.object.texture.borderColor, 4, pBorderColor);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuTexRefGetFlags(unsigned int* pFlags, CUtexref hTexRef) {
  return ask<unsigned>(hTexRef, pFlags, [](const TextureReference& reference) {
    return reference.object.texture.flags;
  });
}
