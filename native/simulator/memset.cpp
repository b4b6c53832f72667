#include "native/simulator/memset.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "native/simulator/memory.h"

namespace simulator {
namespace {

template <class Element>
void fill(const CUDA_MEMSET_NODE_PARAMS& memset) {
  for (std::size_t row = 0; row < memset.height; ++row)
    std::fill_n(reinterpret_cast<Element*>(memset.dst + row * memset.pitch), memset.width,
                static_cast<Element>(memset.value));
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
  return insideWritable(begin, (height - 1) * pitch + width * size) ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_VALUE;
}

void run(const CUDA_MEMSET_NODE_PARAMS& memset) {
  switch (memset.elementSize) {
    case 1: return fill<std::uint8_t>(memset);
    case 2: return fill<std::uint16_t>(memset);
    default: return fill<std::uint32_t>(memset);
  }
}

}  // namespace simulator
