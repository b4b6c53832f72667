// A green context: a part of the multiprocessors of a device, and streams that belong to it. The
// simulator answers as if it restricted them.
#pragma once

#include <cstdint>

#include "cuda_abi.h"

namespace simulator {

struct Context;

/// Its address is the handle of the green context, and of the context that it is converted to.
struct GreenContext {
  Context& primary;
  const CUdevice device;
  const unsigned multiprocessors;
  const std::uint64_t id;
};

}  // namespace simulator
