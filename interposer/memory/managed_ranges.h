// All managed memory of the process, variables included, with what the program said of it.
#pragma once

#include "wire/managed_ranges.h"

namespace interposer {

inline wire::ManagedRanges& managedRanges() {
  static auto* const ranges = new wire::ManagedRanges;
  return *ranges;
}

/// Whether the address lies in managed memory.
inline bool isManaged(CUdeviceptr address) { return managedRanges().find(address).has_value(); }

}  // namespace interposer
