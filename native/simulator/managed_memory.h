// Managed memory: memory of a simulated GPU, which the host reaches at the same address anyway. So
// advice and prefetches have no effect but what queries return.
#pragma once

#include "wire/managed_ranges.h"

namespace simulator {

/// All managed memory of the process, with what the program said of it.
wire::ManagedRanges& managedRanges();

}  // namespace simulator
