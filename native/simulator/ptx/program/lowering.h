// One function from its tree to operations.
#pragma once

#include "native/simulator/ptx/program/program.h"

namespace simulator::ptx {

Code lower(LinkedProgram& program, std::uint32_t module, const Function& function);

}  // namespace simulator::ptx
