// Values per context for cudart and libraries on it (a private table of the driver). They stay in
// this process.
#pragma once

#include <cstdint>

#include "cuda_abi.h"

namespace interposer {

using ContextValueDestructor = void (*)(CUcontext, const void* key, void* value);

/// Null as context is the current one. CUDA_ERROR_INVALID_CONTEXT without one,
/// CUDA_ERROR_INVALID_HANDLE when the key holds nothing.
CUresult putContextValue(CUcontext context, const void* key, void* value,
                         ContextValueDestructor destructor);
CUresult removeContextValue(CUcontext context, const void* key);
CUresult getContextValue(void** value, CUcontext context, const void* key);

/// The context with this id has ended: its values are forgotten. Their destructors are not called;
/// cudart does not need that (tested).
void clearContextStorage(std::uint64_t contextId);

}  // namespace interposer
