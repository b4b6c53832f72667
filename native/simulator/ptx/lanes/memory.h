// From the address operand of an operation to checked addresses of this process.
#pragma once

#include "native/simulator/ptx/lanes/lanes.h"
#include "native/simulator/ptx/machine/addresses.h"
#include "native/simulator/ptx/machine/multiprocessor.h"

namespace simulator::ptx::SIMULATOR_LANES {

/// The addresses as the program computes them. Lanes outside the mask get that of a lane inside, so
/// that they need no test later.
[[gnu::always_inline]] inline void computeAddresses(Warp& w, const Operation* op, u32 mask,
                                                    u64* address) {
  const u64 offset =
      u64(op->immediate) + (op->flags & Operation::kFrameLocal ? w.frame->localBase : 0);
  if (!(op->flags & Operation::kHasAddress)) {
    FOR_LANES(i) address[i] = offset;
    return;
  }
  if (op->flags & Operation::kWideAddress) {
    const u64* base = w.at<u64>(op->slot[Operation::kAddress]);
    FOR_LANES(i) address[i] = base[i] + offset;
  } else {
    const u32* base = w.at<u32>(op->slot[Operation::kAddress]);
    FOR_LANES(i)
    address[i] =
        u32(base[i] + u32(offset));  // the sum has 32 bits, too: a compiler counts from below zero
  }
  if (mask == kAllLanes) return;
  const u64 any = address[__builtin_ctz(mask)];
  FOR_LANES(i) address[i] = (mask >> i) & 1 ? address[i] : any;
}

/// Fills `address` with addresses of this process at which `bytes` bytes may be touched; false
/// after a fault.
template <Space space>
[[gnu::always_inline]] inline bool resolve(Warp& w, const Operation* op, u32 mask, u64 bytes,
                                           u64* address) {
  computeAddresses(w, op, mask, address);
  u64 lowest = ~0ull, highest = 0, together = 0;
  FOR_LANES(i) {
    lowest = address[i] < lowest ? address[i] : lowest;
    highest = address[i] > highest ? address[i] : highest;
    together |= address[i];
  }
  if (together & (bytes - 1)) [[unlikely]]
    return misaligned(w, op);
  if (space == Space::Generic && highest >> kWindowShift)
    return resolveWindows(w, op, mask, bytes, address);
  if (space == Space::Global || space == Space::Generic) {
    const Range& range = w.processor->ranges[op->target % Multiprocessor::kRanges];
    if (lowest >= range.begin && highest < range.end && highest + bytes <= range.end) [[likely]]
      return true;
    return resolveGlobal(w, op, mask, bytes, address);
  }
  if (space == Space::Shared) {
    if (highest + bytes > w.sharedBytes || highest + bytes < bytes) [[unlikely]]
      return resolveShared(w, op, mask, bytes, address);
    const u64 base = reinterpret_cast<u64>(w.shared);
    FOR_LANES(i) address[i] += base;
    return true;
  }
  if (space == Space::Local) {
    if (highest + bytes > w.localBytes || highest + bytes < bytes) [[unlikely]]
      return outside(w, op);
    const u64 base = reinterpret_cast<u64>(w.local), stride = w.localStride;
    const u64 idle = __builtin_ctz(mask);
    FOR_LANES(i) address[i] += base + ((mask >> i) & 1 ? u64(i) : idle) * stride;
    return true;
  }
  if (highest + bytes > w.parameterBytes || highest + bytes < bytes) [[unlikely]]
    return outside(w, op);
  const u64 base = reinterpret_cast<u64>(w.parameters);
  FOR_LANES(i) address[i] += base;
  return true;
}

}  // namespace simulator::ptx::SIMULATOR_LANES
