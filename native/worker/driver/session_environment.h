// The driver's environment in the worker of a session.
#pragma once

#include <cstddef>
#include <span>

#include "native/worker/driver/environment.h"
#include "native/worker/options.h"

namespace worker {

/// driverEnvironment() and placed(), as the options say. Checks are of simulated GPUs only: they
/// decide how memory is allocated, which a client does not choose on a real GPU.
Environment sessionEnvironment(std::span<const std::byte> variables, const Options& options);

}  // namespace worker
