#include "native/simulator/ptx/machine/addresses.h"

#include <bit>

#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/runtime/error_texts.h"

namespace simulator::ptx {
namespace {

std::uint8_t* sharedAt(Warp& warp, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t rank = offset >> kRankShift;
  std::uint8_t* base = warp.shared;
  if (rank > 0) {
    if (rank > warp.block->cluster.size()) return nullptr;
    base = warp.block->cluster[rank - 1]->shared;
    offset &= (1ull << kRankShift) - 1;
  }
  return offset + bytes <= warp.sharedBytes ? base + offset : nullptr;
}

bool inGlobal(Warp& warp, std::uint64_t address, std::uint64_t bytes, Use use) {
  const std::uint64_t workspace = reinterpret_cast<std::uint64_t>(warp.block->run->gridWorkspace);
  if (address - workspace <= sizeof warp.block->run->gridWorkspace - bytes &&
      bytes <= sizeof warp.block->run->gridWorkspace)
    return true;
  const AddressSpace& memory = *warp.processor->memory;
  if (use == Use::write) return memory.containsWritable(address, bytes);
  return memory.contains(address, bytes) || insideErrorTexts(address, bytes);
}

}  // namespace

bool misaligned(Warp& warp, const Operation* op) {
  warp.fault(CUDA_ERROR_MISALIGNED_ADDRESS, op);
  return false;
}

bool outside(Warp& warp, const Operation* op) {
  warp.fault(CUDA_ERROR_ILLEGAL_ADDRESS, op);
  return false;
}

bool resolveGlobal(Warp& warp, const Operation* op, std::uint32_t mask, std::uint64_t bytes,
                   std::uint64_t* address, Use use) {
  Range& range = warp.processor->ranges[op->target % Multiprocessor::kRanges];
  Range found = range;
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const std::uint64_t at = address[std::countr_zero(left)];
    if (at >= found.begin && at < found.end && at + bytes <= found.end) continue;
    const auto [begin, end] = warp.processor->memory->around(at);
    if (at >= begin && at < end && at + bytes <= end) {
      found = {begin, end};
    } else if (!inGlobal(warp, at, bytes, use)) {
      return outside(warp, op);
    }
  }
  range = found;
  return true;
}

bool resolveShared(Warp& warp, const Operation* op, std::uint32_t mask, std::uint64_t bytes,
                   std::uint64_t* address) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned from = (mask >> lane) & 1 ? lane : static_cast<unsigned>(std::countr_zero(mask));
    if (from < lane && !((mask >> lane) & 1)) {
      address[lane] = address[from];
      continue;
    }
    std::uint8_t* found = sharedAt(warp, address[lane], bytes);
    if (!found) return outside(warp, op);
    address[lane] = reinterpret_cast<std::uint64_t>(found);
  }
  return true;
}

bool resolveWindows(Warp& warp, const Operation* op, std::uint32_t mask, std::uint64_t bytes,
                    std::uint64_t* address, Use use) {
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(left));
    void* found = hostAddress(warp, lane, address[lane], bytes, use);
    if (!found) return outside(warp, op);
    address[lane] = reinterpret_cast<std::uint64_t>(found);
  }
  const std::uint64_t any = address[std::countr_zero(mask)];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!((mask >> lane) & 1)) address[lane] = any;
  }
  return true;
}

std::uint64_t addressOfLane(Warp& warp, const Operation* op, unsigned lane) {
  const auto offset = static_cast<std::uint64_t>(op->immediate) +
                      (op->flags & Operation::kFrameLocal ? warp.frame->localBase : 0);
  if (!(op->flags & Operation::kHasAddress)) return offset;
  if (op->flags & Operation::kWideAddress)
    return offset + warp.at<std::uint64_t>(op->slot[Operation::kAddress])[lane];
  return static_cast<std::uint32_t>(offset +
                                    warp.at<std::uint32_t>(op->slot[Operation::kAddress])[lane]);
}

void* hostAddress(Warp& warp, unsigned lane, std::uint64_t generic, std::uint64_t bytes, Use use) {
  const std::uint64_t offset = generic & kWindowOffset;
  switch (generic & ~kWindowOffset) {
    case 0: return inGlobal(warp, generic, bytes, use) ? reinterpret_cast<void*>(generic) : nullptr;
    case kSharedWindow: return sharedAt(warp, offset, bytes);
    case kLocalWindow:
      return offset + bytes <= warp.localBytes
                 ? warp.local + static_cast<std::uint64_t>(lane) * warp.localStride + offset
                 : nullptr;
    case kParameterWindow:
      return offset + bytes <= warp.parameterBytes
                 ? const_cast<std::uint8_t*>(warp.parameters) + offset
                 : nullptr;
    default: return nullptr;
  }
}

}  // namespace simulator::ptx
