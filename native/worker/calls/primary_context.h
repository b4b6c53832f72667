// The primary context of a device, which green contexts may keep alive.
#pragma once

#include "native/worker/session/thread.h"

namespace worker {

/// Null if it is not retained.
CUcontext primaryOf(const Thread& thread, CUdevice device);

/// The driver still counts retains from before a reset, and frees the memory only with the context.
/// So it is released until it is inactive. No green context of the device may live: each has a
/// retain of its own.
CUresult endPrimaryContext(Thread& thread, CUdevice device);

}  // namespace worker
