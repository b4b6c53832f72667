// The error that ended all work of this process. As on a real GPU it reaches every context of the process, also new ones, and nothing
// but a new process helps.
#pragma once

#include "cuda_abi.h"

namespace simulator {

CUresult fault();
/// The first one stays.
void setFault(CUresult code);

}  // namespace simulator
