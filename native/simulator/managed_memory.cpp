#include "native/simulator/managed_memory.h"

namespace simulator {

wire::ManagedRanges& managedRanges() {
  static wire::ManagedRanges& ranges = *new wire::ManagedRanges;
  return ranges;
}

}  // namespace simulator
