// The functions of CUDA's device runtime with which the threads of a grid synchronise. Programs
// that include cooperative_groups.h have the same in line; those of Numba call them.
#pragma once

#include <span>
#include <string_view>

#include "native/simulator/ptx/syntax/tree.h"

namespace simulator::ptx {

/// The text that defines them, if one of the modules declares one; else empty.
std::string_view gridGroups(std::span<const Module> modules);

}  // namespace simulator::ptx
