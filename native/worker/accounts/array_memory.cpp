#include "native/worker/accounts/array_memory.h"

#include <algorithm>
#include <bit>

#include "wire/array_format.h"

namespace worker {

namespace {

constexpr std::uint64_t kTooMany = ~std::uint64_t{0};

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kTooMany : product;
}

std::uint64_t plus(std::uint64_t a, std::uint64_t b) { return a > kTooMany - b ? kTooMany : a + b; }

std::uint64_t roundedUp(std::uint64_t value, std::uint64_t unit) {
  return value > kTooMany - unit ? kTooMany : (value + unit - 1) / unit * unit;
}

/// A count of rows' units or of slices, up to whole blocks.
std::uint64_t wholeBlocks(std::uint64_t count) {
  constexpr std::uint64_t kMost = 32;
  return roundedUp(count,
                   count >= kMost ? kMost : std::bit_ceil(std::max<std::uint64_t>(count, 1)));
}

/// The largest element of the formats that have none of their own: a block of 16 bytes, or what the
/// planes of a pixel take together.
constexpr std::uint64_t kLargestElement = 16;

std::uint64_t bytesOfElement(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  const std::uint64_t bytes = wire::elementBytes(descriptor.Format, descriptor.NumChannels);
  return bytes != 0 ? bytes : kLargestElement;
}

}  // namespace

std::uint64_t mostArrayBytes(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels) {
  const bool layered = (descriptor.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  std::uint64_t total = 0;
  for (unsigned level = 0; level < std::clamp(levels, 1u, 64u); ++level) {
    const auto extent = [&](std::uint64_t whole) {
      return std::max<std::uint64_t>(level < 64 ? whole >> level : 0, 1);
    };
    const std::uint64_t row =
        roundedUp(times(extent(descriptor.Width), bytesOfElement(descriptor)), 64);
    const std::uint64_t units = wholeBlocks(roundedUp(extent(descriptor.Height), 8) / 8);
    const std::uint64_t slices = layered ? std::max<std::uint64_t>(descriptor.Depth, 1)
                                         : wholeBlocks(extent(descriptor.Depth));
    total = plus(total, times(times(row, times(units, 8)), slices));
  }
  return total;
}

std::uint64_t shareOfBlock(std::uint64_t bytes) {
  constexpr std::uint64_t kUnit = 4096;
  constexpr std::uint64_t kBlock = std::uint64_t{2} << 20;
  const std::uint64_t whole = roundedUp(std::max<std::uint64_t>(bytes, 1), kUnit);
  if (whole > kBlock / 2) return roundedUp(whole, kBlock);
  const std::uint64_t perBlock = kBlock / whole;
  return (kBlock + perBlock - 1) / perBlock;
}

}  // namespace worker
