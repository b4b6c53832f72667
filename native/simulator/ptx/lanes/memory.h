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

/// Whether accesses fit into `limit`, by an upper bound of the lanes' offsets: cheaper than their
/// maximum, and rarely different.
[[gnu::always_inline]] inline bool within(u64 together, u64 bytes, u64 limit) {
  return together < limit && bytes <= limit - together;
}

/// The exact test of offsets below `limit`.
[[gnu::noinline]] inline bool allWithin(const u64* offset, u64 bytes, u64 limit) {
  u64 highest = 0;
  FOR_LANES(i) highest = offset[i] > highest ? offset[i] : highest;
  return within(highest, bytes, limit);
}

/// Device memory. Most instructions touch one allocation at a time.
template <Space space, Use use>
[[gnu::always_inline]] inline bool resolveDevice(Warp& w, const Operation* op, u32 mask, u64 bytes,
                                                 u64* address, u64 together) {
  const Range& range = w.processor->ranges[op->target % Multiprocessor::kRanges];
  alignas(64) u64 offset[32];
  u64 offsets = 0;
  FOR_LANES(i) {
    offset[i] = address[i] - range.begin;
    offsets |= offset[i];
  }
  const u64 size = range.end - range.begin;
  if (within(offsets, bytes, size) || allWithin(offset, bytes, size)) [[likely]]
    return true;
  if (space == Space::Generic && together >> kWindowShift)
    return resolveWindows(w, op, mask, bytes, address, use);
  return resolveGlobal(w, op, mask, bytes, address, use);
}

/// Fills `address` with addresses of this process at which `bytes` bytes may be touched; false
/// after a fault.
template <Space space, Use use>
[[gnu::always_inline]] inline bool resolve(Warp& w, const Operation* op, u32 mask, u64 bytes,
                                           u64* address) {
  computeAddresses(w, op, mask, address);
  u64 together = 0;
  FOR_LANES(i) together |= address[i];
  if (together & (bytes - 1)) [[unlikely]]
    return misaligned(w, op);
  if (space == Space::Global || space == Space::Generic)
    return resolveDevice<space, use>(w, op, mask, bytes, address, together);
  const u64 limit = space == Space::Shared  ? w.sharedBytes
                    : space == Space::Local ? w.localBytes
                                            : w.parameterBytes;
  if (!within(together, bytes, limit) && !allWithin(address, bytes, limit)) [[unlikely]]
    return space == Space::Shared ? resolveShared(w, op, mask, bytes, address) : outside(w, op);
  if (space == Space::Local) {
    const u64 base = reinterpret_cast<u64>(w.local), stride = w.localStride;
    const u64 idle = __builtin_ctz(mask);
    FOR_LANES(i) address[i] += base + ((mask >> i) & 1 ? u64(i) : idle) * stride;
    return true;
  }
  const u64 base = space == Space::Shared ? reinterpret_cast<u64>(w.shared)
                                          : reinterpret_cast<u64>(w.parameters);
  FOR_LANES(i) address[i] += base;
  return true;
}

}  // namespace simulator::ptx::SIMULATOR_LANES
