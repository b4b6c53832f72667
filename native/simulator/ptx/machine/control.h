// Handlers of branches, barriers, special registers and what else concerns the warp as a whole.
#pragma once

#include <cstdint>
#include <string_view>

#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

const Operation* jump(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* branch(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* branchByTable(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* exitThread(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* trap(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* illegalAddress(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* nothing(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* fence(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* sleepNanoseconds(Warp& w, const Operation* op, std::uint32_t mask);

// barrier.cpp
enum class Reduction : std::uint8_t { None, Popc, And, Or };
const Operation* barrierWait(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* barrierArrive(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* clusterBarrierArrive(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* clusterBarrierWait(Warp& w, const Operation* op, std::uint32_t mask);

// sync.cpp: a .sync operation waits for the lanes of its membermask, then runs `inner` for the
// group.
enum class Exchange : std::uint8_t { Nothing, Word, TwoWords, Predicate };
const Operation* convergeMembers(Warp& w, const Operation* op, std::uint32_t mask);

/// Start of dynamic shared memory, for functions that several kernels call.
const Operation* dynamicSharedAddress(Warp& w, const Operation* op, std::uint32_t mask);

// special.cpp
/// The number under which readSpecial knows a special register such as "%tid.x"; -1 for none.
/// `bytes` is its width.
int specialNumber(std::string_view name, unsigned& bytes);
const Operation* readSpecial(Warp& w, const Operation* op, std::uint32_t mask);

}  // namespace simulator::ptx
