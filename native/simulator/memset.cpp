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

bool reachable(const CUDA_MEMSET_NODE_PARAMS& memset) {
  return insideAllocation(memset.dst, extent(memset));
}

/// False if the memory was unmapped before the end.
template <class Element>
bool fill(const CUDA_MEMSET_NODE_PARAMS& memset) {
  constexpr std::size_t kPiece = (1 << 20) / sizeof(Element);  // cuMemUnmap waits for as many
  MemoryUser user;
  bool allowed = reachable(memset);
  for (std::size_t row = 0; row < memset.height; ++row) {
    auto* const begin = reinterpret_cast<Element*>(memset.dst + row * memset.pitch);
    for (std::size_t done = 0; allowed && done < memset.width; done += kPiece) {
      std::fill_n(begin + done, std::min(kPiece, memset.width - done),
                  static_cast<Element>(memset.value));
      if (user.revoked()) allowed = reachable(memset);
    }
  }
  return allowed;
}

bool fillElements(const CUDA_MEMSET_NODE_PARAMS& memset) {
  switch (memset.elementSize) {
    case 1: return fill<std::uint8_t>(memset);
    case 2: return fill<std::uint16_t>(memset);
    default: return fill<std::uint32_t>(memset);
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

void run(const CUDA_MEMSET_NODE_PARAMS& memset) {
  if (!fillElements(memset)) setFault(CUDA_ERROR_LAUNCH_FAILED);
}

}  // namespace simulator
