// cuMemHostRegister: memory of the program's own. The worker maps the same pages at the same
// address: the file of a shared mapping, or a memory file onto which private pages move in place.
#pragma once

#include "cuda_abi.h"

namespace interposer {

/// Ends the registrations that were made with a context, which has ended.
void endRegistrations(CUcontext context);

}  // namespace interposer
