// Handlers of call, ret, alloca.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

const Operation* callDirect(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* callIndirect(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* callBuiltin(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* returnFromCall(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* allocateLocal(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* saveStack(Warp& w, const Operation* op, std::uint32_t mask);

}  // namespace simulator::ptx
