// mbarrier objects in shared memory. All threads that can reach one run on one host thread, so
// plain memory will do.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

const Operation* mbarrierInit(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* mbarrierInvalidate(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* mbarrierArrive(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* mbarrierTest(Warp& w, const Operation* op, std::uint32_t mask);

}  // namespace simulator::ptx
