#include "native/worker/accounts/array_memory.h"

#include "test/unit/program.h"

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kTooMany = ~std::uint64_t{0};

CUDA_ARRAY3D_DESCRIPTOR floats(std::size_t width, std::size_t height, std::size_t depth,
                               unsigned flags = 0) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 4, flags};
}

TEST_CASE("an array takes whole blocks of rows and slices") {
  using worker::mostArrayBytes;
  CHECK(mostArrayBytes(floats(4096, 4096, 0), 1) == 256 * kMiB);
  CHECK(mostArrayBytes(floats(1, 1, 0), 1) == 512);
  CHECK(mostArrayBytes(floats(4, 9, 0), 1) == 1024);
  CHECK(mostArrayBytes(floats(4, 8, 3), 1) == 2048);
  CHECK(mostArrayBytes(floats(4, 8, 3, CUDA_ARRAY3D_LAYERED), 1) == 1536);
  CHECK(mostArrayBytes(floats(4096, 4096, 33), 1) == 64 * 256 * kMiB);
}

TEST_CASE("a mipmapped array takes all its levels, however many are asked for") {
  using worker::mostArrayBytes;
  CHECK(mostArrayBytes(floats(8, 8, 0), 2) == 1024 + 512);
  const std::uint64_t all = mostArrayBytes(floats(4096, 4096, 0), 13);
  CHECK(all >= 341 * kMiB);
  CHECK(all < 350 * kMiB);
  CHECK(mostArrayBytes(floats(4096, 4096, 0), ~0u) < all + kMiB);
}

TEST_CASE("sizes beyond 64 bits are the largest number") {
  using worker::mostArrayBytes;
  for (const auto& descriptor :
       {floats(kTooMany, kTooMany, kTooMany), floats(kTooMany, 1, 1), floats(1, kTooMany, 0),
        floats(1, 1, kTooMany), floats(std::size_t{1} << 32, std::size_t{1} << 32, 0)}) {
    CHECK(mostArrayBytes(descriptor, 1) >= std::uint64_t{1} << 60);
    CHECK(mostArrayBytes(descriptor, ~0u) >= std::uint64_t{1} << 60);
  }
  CUDA_ARRAY3D_DESCRIPTOR channels = floats(1 << 20, 1 << 20, 0);
  channels.NumChannels = ~0u;
  CHECK(mostArrayBytes(channels, 1) >= std::uint64_t{1} << 60);
}

TEST_CASE("a format without elements of its own counts as the largest") {
  CUDA_ARRAY3D_DESCRIPTOR planes = floats(64, 8, 0);
  for (const int format : {176, 145, 0, -1, 12345}) {
    planes.Format = static_cast<CUarray_format>(format);
    CHECK(worker::mostArrayBytes(planes, 1) == 64 * 8 * 16);
  }
}

TEST_CASE("arrays of up to 1 MiB share blocks of 2 MiB") {
  using worker::shareOfBlock;
  CHECK(shareOfBlock(640000) == 699051);
  CHECK(shareOfBlock(540672) == 699051);
  CHECK(shareOfBlock(1) == 4096);
  CHECK(shareOfBlock(kMiB) == kMiB);
  CHECK(shareOfBlock(kMiB + 1) == 2 * kMiB);
  CHECK(shareOfBlock(3 * kMiB) == 4 * kMiB);
  CHECK(shareOfBlock(kTooMany) == kTooMany);
}

}  // namespace
