// Generated. Do not edit, change cuda-api/.
// Hand-written bodies of exported functions. `defaultStream`: 0, or CU_STREAM_PER_THREAD.
#pragma once

#include "cuda_abi.h"

namespace interposer {

CUresult cuToyInit(unsigned int flags);
CUresult cuToyCopy(void* to, const void* from, size_t bytes, CUstream defaultStream);
CUresult cuToyLoad(CUmodule* module, const char* name, const void* image);

}  // namespace interposer
