// A worker whose session may move sees more GPUs than its program, because the driver moves a
// process only to a GPU that the process sees. No call may name another one than the program's own.
#pragma once

#include "driver.h"

namespace worker {

/// Replaces each function that names a GPU: other than the first, it answers
/// CUDA_ERROR_INVALID_DEVICE. Functions that only the worker's own code calls stay. Call it once in
/// a process.
void allowFirstDeviceOnly(Driver& driver);

}  // namespace worker
