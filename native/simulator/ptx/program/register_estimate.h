// How many hardware registers a thread of a function needs.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/program/value_parts.h"

namespace simulator::ptx {

/// Registers of 32 bits that hold values at the same time where most do. An estimate of what
/// NVIDIA's assembler allocates, low rather than high: a value that the assembler can recompute, or
/// keeps in constant memory or uniform registers, counts nothing.
std::uint32_t estimateRegisters(const Function& function, const ControlFlow& flow,
                                const RegisterEffects& effects);

}  // namespace simulator::ptx
