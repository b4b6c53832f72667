#include "native/simulator/ptx/machine/bulk_copy.h"

#include <bit>
#include <cstring>

#include "native/simulator/ptx/machine/addresses.h"

namespace simulator::ptx {

bool findBulkCopy(Warp& w, const Operation* op, unsigned lane, BulkCopy& copy) {
  constexpr std::uint64_t kUnit = 16;
  const auto offset = static_cast<std::uint64_t>(static_cast<std::int32_t>(op->target));
  const std::uint64_t from = w.at<std::uint64_t>(op->slot[0])[lane] + offset;
  const std::uint64_t to = addressOfLane(w, op, lane);
  copy.bytes = w.at<std::uint32_t>(op->slot[1])[lane];
  if ((from | to | copy.bytes) % kUnit != 0) return misaligned(w, op);
  copy.source = static_cast<const std::byte*>(hostAddress(w, lane, from, copy.bytes, Use::read));
  copy.destination = static_cast<std::byte*>(hostAddress(w, lane, to, copy.bytes, Use::write));
  return (copy.source != nullptr && copy.destination != nullptr) || outside(w, op);
}

const Operation* copyBulk(Warp& w, const Operation* op, std::uint32_t mask) {
  for (std::uint32_t left = mask; left; left &= left - 1) {
    BulkCopy copy;
    if (!findBulkCopy(w, op, static_cast<unsigned>(std::countr_zero(left)), copy)) return nullptr;
    std::memcpy(copy.destination, copy.source, copy.bytes);
  }
  return op + 1;
}

}  // namespace simulator::ptx
