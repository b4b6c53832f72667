// The fault that ended all work of this process. As on a real GPU, it affects all contexts of the
// process, also new ones, and only a new process recovers.
#pragma once

#include "cuda_abi.h"

namespace simulator {

CUresult fault();
/// Sets the fault. The first one stays.
void setFault(CUresult code);

}  // namespace simulator
