#include "native/simulator/memset.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "native/simulator/fault.h"
#include "native/simulator/memory.h"
#include "native/simulator/memory_user.h"

namespace simulator {
namespace {

/// Bytes from the first to the last one that are written.
std::size_t extent(const CUDA_MEMSET_NODE_PARAMS& memset) {
  return (memset.height - 1) * memset.pitch + memset.width * memset.elementSize;
}

bool stillMapped(const CUDA_MEMSET_NODE_PARAMS& memset) {
  return insideMapped(memset.dst, extent(memset));
}

/// Calls allowed() before each piece, and ends if it returns false.
template <class Element>
void fill(const CUDA_MEMSET_NODE_PARAMS& memset, auto&& allowed) {
  constexpr std::size_t kPiece = (1 << 20) / sizeof(Element);  // cuMemUnmap waits for as many
  for (std::size_t row = 0; row < memset.height; ++row) {
    auto* const begin = reinterpret_cast<Element*>(memset.dst + row * memset.pitch);
    for (std::size_t done = 0; done < memset.width; done += kPiece) {
      if (!allowed()) return;
      std::fill_n(begin + done, std::min(kPiece, memset.width - done),
                  static_cast<Element>(memset.value));
    }
  }
}

void fillElements(const CUDA_MEMSET_NODE_PARAMS& memset, auto&& allowed) {
  switch (memset.elementSize) {
    case 1: return fill<std::uint8_t>(memset, allowed);
    case 2: return fill<std::uint16_t>(memset, allowed);
    default: return fill<std::uint32_t>(memset, allowed);
  }
}

}  // namespace

CUresult check(const CUDA_MEMSET_NODE_PARAMS& memset) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 2;
  const auto& [begin, pitch, value, size, width, height] = memset;
  if (size != 1 && size != 2 && size != 4) return CUDA_ERROR_INVALID_VALUE;
  if (width == 0 || height == 0 || width > kMost / size) return CUDA_ERROR_INVALID_VALUE;
  if (height > 1 && (pitch < width * size || height > kMost / pitch))
    return CUDA_ERROR_INVALID_VALUE;
  if (begin % size != 0 || (height > 1 && pitch % size != 0)) return CUDA_ERROR_INVALID_VALUE;
  return insideWritable(begin, extent(memset)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

PreparedMemset prepared(const CUDA_MEMSET_NODE_PARAMS& memset) {
  // A node of a graph may name memory that is gone by now. Then it faults as an unmapped one does.
  const bool gone = !Allocations::all().find(memset.dst);
  return {memset, gone || insideMapped(memset.dst, 1)};
}

void run(const PreparedMemset& memset) {
  if (!memset.mapped) return fillElements(memset.parameters, [] { return true; });
  MemoryUser user;
  bool mapped = stillMapped(memset.parameters);
  fillElements(memset.parameters, [&] {
    if (user.revoked()) mapped = stillMapped(memset.parameters);
    return mapped;
  });
  if (!mapped) setFault(CUDA_ERROR_LAUNCH_FAILED);
}

}  // namespace simulator
