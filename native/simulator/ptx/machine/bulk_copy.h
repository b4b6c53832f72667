// cp.async.bulk: a copy of any multiple of 16 bytes by one thread.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

/// Copies at once. Slot 0: generic address of the source, to which `target` is added. Slot 1:
/// bytes. The address operand: generic address of the destination.
const Operation* copyBulk(Warp& w, const Operation* op, std::uint32_t mask);

}  // namespace simulator::ptx
