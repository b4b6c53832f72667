// Managed variables of modules. The driver places them in memory that only the worker has, so this
// process has a copy at the same address. What the program writes goes to the GPU with its next
// call, and what the GPU writes comes back after calls that wait. CUDA forbids both sides to use
// the variable at once (concurrentManagedAccess is 0), so no write is lost. Of large variables,
// only the pages are compared that the program has written, if the kernel tells which.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda_abi.h"

namespace interposer {

/// Makes the copy of a variable of this code, if the worker's driver says that it is managed.
CUresult mirrorIfManaged(CUdeviceptr address, std::size_t bytes, std::uint64_t code);
/// Forgets the variables of the modules of a context that has ended.
void forgetMirrors(CUcontext context);

}  // namespace interposer
