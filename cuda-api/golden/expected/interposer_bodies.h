// Generated. Do not edit, change cuda-api/.
// Bodies of exported functions that are written by hand. `defaultStream` is 0, or CU_STREAM_PER_THREAD in the per-thread variant.
#pragma once

#include "cuda_abi.h"

namespace interposer {

CUresult cuToyInit(unsigned int flags);
CUresult cuToyCopy(void* to, const void* from, size_t bytes, CUstream defaultStream);
CUresult cuToyLoad(CUmodule* module, const char* name, const void* image);

}  // namespace interposer
