// The two ends of a copy that the client describes.
#pragma once

#include "cuda_abi.h"

namespace worker {

class Thread;

/// Replaces handles of arrays by their objects, and checks that memory of the host is shared with
/// the client. An end that may be anywhere becomes memory of the host or of the device: the driver
/// would take it for the worker's own. Clears the reserved fields.
CUresult resolveOperands(const Thread& thread, CUDA_MEMCPY3D& copy);

}  // namespace worker
