#include "native/simulator/ptx/machine/bulk_copy.h"

#include <bit>
#include <cstring>

#include "native/simulator/ptx/machine/addresses.h"

namespace simulator::ptx {

const Operation* copyBulk(Warp& w, const Operation* op, std::uint32_t mask) {
  constexpr std::uint64_t kUnit = 16;
  const std::uint64_t* sources = w.at<std::uint64_t>(op->slot[0]);
  const std::uint32_t* sizes = w.at<std::uint32_t>(op->slot[1]);
  const auto offset = static_cast<std::uint64_t>(static_cast<std::int32_t>(op->target));
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t from = sources[lane] + offset, to = addressOfLane(w, op, lane);
    const std::uint32_t bytes = sizes[lane];
    if ((from | to | bytes) % kUnit != 0) {
      misaligned(w, op);
      return nullptr;
    }
    const void* source = hostAddress(w, lane, from, bytes, Use::read);
    void* destination = hostAddress(w, lane, to, bytes, Use::write);
    if (!source || !destination) {
      outside(w, op);
      return nullptr;
    }
    std::memcpy(destination, source, bytes);
  }
  return op + 1;
}

}  // namespace simulator::ptx
