// What many arrays of one shape take of the GPU's memory: no less than their elements, and no more than whole blocks of 64 bytes by 8 rows, up to 32 by 32 of these, which share 2 MiB.
// conformance: flags=-lcuda judges=itself alone=yes memory=2GiB
#include <algorithm>
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

constexpr std::size_t MiB = std::size_t{1} << 20;

static std::size_t freeBytes() {
  std::size_t free = 0, total = 0;
  EXPECT_DRIVER(cuMemGetInfo(&free, &total));
  return free;
}

struct Shape {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  unsigned levels;
  std::size_t elementBytes;
};

static std::size_t roundedUp(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

static std::size_t wholeBlocks(std::size_t count) {
  std::size_t block = 1;
  while (block < count && block < 32) block *= 2;
  return roundedUp(count, block);
}

/// Bytes of the elements, and of whole blocks with all their pages.
static void measure(const Shape& shape, std::size_t& least, std::size_t& most) {
  least = most = 0;
  const bool layered = shape.descriptor.Flags != 0;
  for (unsigned level = 0; level < shape.levels; ++level) {
    const auto extent = [&](std::size_t whole) { return std::max<std::size_t>(whole >> level, 1); };
    const std::size_t row = extent(shape.descriptor.Width) * shape.elementBytes, rows = extent(shape.descriptor.Height);
    const std::size_t slices = layered ? shape.descriptor.Depth : extent(shape.descriptor.Depth);
    least += row * rows * slices;
    most += roundedUp(row, 64) * 8 * wholeBlocks((rows + 7) / 8) * (layered ? slices : wholeBlocks(slices));
  }
  most = roundedUp(most, 4096);
  if (most > MiB) {
    most = roundedUp(most, 2 * MiB);
  } else {
    const std::size_t perBlock = 2 * MiB / most;  // arrays share blocks of 2 MiB
    most = (2 * MiB + perBlock - 1) / perBlock;
  }
}

template <class Array, class Make, class Destroy>
static void check(const Shape& shape, int line, Make make, Destroy destroy) {
  std::size_t least = 0, most = 0;
  measure(shape, least, most);
  std::vector<Array> arrays(std::clamp<std::size_t>(48 * MiB / least, 1, 3000));
  const std::size_t before = freeBytes();
  for (Array& array : arrays) EXPECT_DRIVER(make(&array));
  const std::size_t after = freeBytes(), taken = before > after ? before - after : 0;
  for (Array array : arrays) EXPECT_DRIVER(destroy(array));
  constexpr std::size_t slack = 8 * MiB;
  const bool holds = taken + slack >= least * arrays.size() && taken <= most * arrays.size() + slack;
  expect(holds, "the arrays take what was computed", line);
  if (!holds)
    std::printf("  %zu arrays took %zu bytes, at least %zu and at most %zu were expected\n", arrays.size(), taken, least * arrays.size(), most * arrays.size());
}

static void check(std::size_t w, std::size_t h, std::size_t d, unsigned flags, unsigned levels, int line) {
  const std::pair<CUarray_format, unsigned> formats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 1}, {CU_AD_FORMAT_FLOAT, 1}, {CU_AD_FORMAT_FLOAT, 4}};
  std::size_t bytes = 1;
  for (const auto& [format, channels] : formats) {
    const Shape shape{{w, h, d, format, channels, flags}, std::max(levels, 1u), bytes};
    if (levels == 0)
      check<CUarray>(shape, line, [&](CUarray* array) { return cuArray3DCreate(array, &shape.descriptor); }, cuArrayDestroy);
    else
      check<CUmipmappedArray>(shape, line, [&](CUmipmappedArray* array) { return cuMipmappedArrayCreate(array, &shape.descriptor, levels); }, cuMipmappedArrayDestroy);
    bytes *= 4;
  }
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  check(5000, 0, 0, 0, 0, __LINE__);
  check(64, 64, 0, 0, 0, __LINE__);
  check(129, 129, 0, 0, 0, __LINE__);
  check(1000, 3, 0, 0, 0, __LINE__);
  check(4096, 4096, 0, 0, 0, __LINE__);
  check(65, 65, 65, 0, 0, __LINE__);
  check(200, 200, 100, 0, 0, __LINE__);
  check(33, 9, 5, CUDA_ARRAY3D_LAYERED, 0, __LINE__);
  check(64, 64, 6, CUDA_ARRAY3D_CUBEMAP, 0, __LINE__);
  check(100, 100, 0, 0, 7, __LINE__);
  check(2048, 2048, 0, 0, 12, __LINE__);
  return verdict();
}
