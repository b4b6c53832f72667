// mbarrier objects in shared memory. All threads that can reach one run on one host thread, so
// plain memory will do.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

const Operation* mbarrierInit(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* mbarrierInvalidate(Warp& w, const Operation* op, std::uint32_t mask);
/// Slot 1: how many arrive, slot 2: bytes to expect; `width`: they arrive for the last time.
const Operation* mbarrierArrive(Warp& w, const Operation* op, std::uint32_t mask);
/// Slot 1: bytes that are to come or have come.
const Operation* mbarrierExpect(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* mbarrierComplete(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* mbarrierPending(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* mbarrierTest(Warp& w, const Operation* op, std::uint32_t mask);

}  // namespace simulator::ptx
