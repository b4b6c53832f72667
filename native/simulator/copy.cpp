#include "native/simulator/copy.h"

#include <cstring>

#include "native/simulator/memory.h"

namespace simulator {
namespace {

bool known(std::uint64_t address) { return Allocations::all().find(address).has_value(); }

bool readOnly(std::uint64_t address) {
  const auto found = Allocations::all().find(address);
  return found && !found->writable();
}

/// Bytes from the first to the last one accessed on a side.
std::size_t extent(const Copy& copy, std::size_t pitch, std::size_t layer) {
  if (copy.rows == 0 || copy.layers == 0) return 0;
  return (copy.layers - 1) * layer + (copy.rows - 1) * pitch + copy.width;
}

bool allowed(std::uint64_t address, std::size_t bytes, Side side) {
  if (side == Side::array) return true;  // describe() has checked it
  if (side == Side::host) return address != 0;
  if (side == Side::any && !known(address)) return address != 0;  // pageable host memory
  return insideAllocation(address, bytes);
}

}  // namespace

std::size_t sourceExtent(const Copy& copy) {
  return extent(copy, copy.sourcePitch, copy.sourceLayer);
}

void run(const Copy& copy) {
  for (std::size_t layer = 0; layer < copy.layers; ++layer) {
    auto* destination =
        reinterpret_cast<std::byte*>(copy.destination + layer * copy.destinationLayer);
    const auto* source = reinterpret_cast<const std::byte*>(copy.source + layer * copy.sourceLayer);
    for (std::size_t row = 0; row < copy.rows; ++row) {
      std::memmove(destination + row * copy.destinationPitch, source + row * copy.sourcePitch,
                   copy.width);
    }
  }
}

CUresult check(const Copy& copy) {
  const std::size_t destination = extent(copy, copy.destinationPitch, copy.destinationLayer);
  const bool valid = !readOnly(copy.destination) &&
                     allowed(copy.destination, destination, copy.to) &&
                     allowed(copy.source, sourceExtent(copy), copy.from);
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simulator
