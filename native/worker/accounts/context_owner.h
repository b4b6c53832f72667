// Which context holds what is taken while a context is current.
#pragma once

#include <functional>

#include "cuda_abi.h"

namespace worker {

/// For a green context the primary context of its device; any other context itself.
using ContextOwner = std::function<CUcontext(CUcontext)>;

}  // namespace worker
