// SHOW for programs that call the driver API themselves; they are linked with -lcuda.
#pragma once

#include <cuda.h>

#include "show.h"

inline const char* resultName(CUresult result) {
  const char* name = nullptr;
  return cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : "unknown";
}
