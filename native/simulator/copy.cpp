#include "native/simulator/copy.h"

#include <algorithm>
#include <cstring>

#include "native/simulator/fault.h"
#include "native/simulator/memory.h"
#include "native/simulator/memory_user.h"

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

std::size_t destinationExtent(const Copy& copy) {
  return extent(copy, copy.destinationPitch, copy.destinationLayer);
}

bool stillMapped(const Copy& copy) {
  return (!copy.toMapped || insideMapped(copy.destination, destinationExtent(copy))) &&
         (!copy.fromMapped || insideMapped(copy.source, sourceExtent(copy)));
}

/// As on an H200: copy engines, which serve the host, report another fault than kernels do.
CUresult faultOf(const Copy& copy) {
  const auto onDevice = [](std::uint64_t address) {
    const auto found = Allocations::all().find(address);
    return found && !found->host();
  };
  const bool within =
      (copy.toMapped || onDevice(copy.destination)) && (copy.fromMapped || onDevice(copy.source));
  return within ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_LAUNCH_FAILED;
}

/// Calls body(destination, source) for each row, until it returns false.
template <class Body>
void eachRow(const Copy& copy, Body&& body) {
  for (std::size_t layer = 0; layer < copy.layers; ++layer) {
    const std::uint64_t destination = copy.destination + layer * copy.destinationLayer;
    const std::uint64_t source = copy.source + layer * copy.sourceLayer;
    for (std::size_t row = 0; row < copy.rows; ++row) {
      if (!body(destination + row * copy.destinationPitch, source + row * copy.sourcePitch)) return;
    }
  }
}

void move(std::uint64_t destination, std::uint64_t source, std::size_t bytes) {
  std::memmove(reinterpret_cast<void*>(destination), reinterpret_cast<const void*>(source), bytes);
}

}  // namespace

std::size_t sourceExtent(const Copy& copy) {
  return extent(copy, copy.sourcePitch, copy.sourceLayer);
}

Copy prepared(Copy copy) {
  // A node of a graph may name memory that is gone by now. Then it faults as an unmapped one does.
  const auto leaves = [](std::uint64_t address, Side side) {
    return insideMapped(address, 1) || (side == Side::device && !known(address));
  };
  copy.toMapped = leaves(copy.destination, copy.to);
  copy.fromMapped = leaves(copy.source, copy.from);
  return copy;
}

void run(const Copy& copy) {
  if (!copy.toMapped && !copy.fromMapped) {
    eachRow(copy, [&](std::uint64_t destination, std::uint64_t source) {
      move(destination, source, copy.width);
      return true;
    });
    return;
  }
  constexpr std::size_t kPiece = 1 << 20;  // cuMemUnmap waits for as many bytes
  MemoryUser user;
  bool mapped = stillMapped(copy);
  eachRow(copy, [&](std::uint64_t destination, std::uint64_t source) {
    for (std::size_t done = 0; mapped && done < copy.width; done += kPiece) {
      move(destination + done, source + done, std::min(kPiece, copy.width - done));
      if (user.revoked()) mapped = stillMapped(copy);
    }
    return mapped;
  });
  if (!mapped) setFault(faultOf(copy));
}

CUresult check(const Copy& copy) {
  const bool valid = !readOnly(copy.destination) &&
                     allowed(copy.destination, destinationExtent(copy), copy.to) &&
                     allowed(copy.source, sourceExtent(copy), copy.from);
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simulator
