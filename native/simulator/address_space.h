// The memory that the kernels of a context may access.
#pragma once

#include <memory>

#include "native/simulator/engine.h"

namespace simulator {

struct Context;

/// Creates the context's address space, which must not outlive the context.
std::unique_ptr<AddressSpace> makeAddressSpace(const Context& context);

}  // namespace simulator
