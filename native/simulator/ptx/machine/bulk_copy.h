// cp.async.bulk: a copy of any multiple of 16 bytes by one thread. cp.reduce.async.bulk: the same
// bytes are operands of atomic operations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

/// One lane's bulk copy, in addresses of this process.
struct BulkCopy {
  const std::byte* source = nullptr;
  std::byte* destination = nullptr;
  std::uint32_t bytes = 0;
};

/// Slot 0: generic address of the source, to which `target` is added. Slot 1: bytes. The address
/// operand: generic address of the destination.
/// @returns false after a fault
bool findBulkCopy(Warp& w, const Operation* op, unsigned lane, BulkCopy& copy);

/// Copies at once. Slots as of findBulkCopy().
const Operation* copyBulk(Warp& w, const Operation* op, std::uint32_t mask);

}  // namespace simulator::ptx
