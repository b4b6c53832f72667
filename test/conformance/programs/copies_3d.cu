// Copies of boxes between pageable, pinned and device memory, from and to any place inside of larger boxes; also boxes and rows of several MiB.
// conformance: judges=itself
#include <vector>

#include "expect.h"

enum Kind { pageable, pinned, device };

/// A box of bytes in one kind of memory.
struct Box {
  Kind kind;
  cudaPitchedPtr memory{};
  cudaExtent extent;

  Box(Kind kind_, cudaExtent extent_) : kind(kind_), extent(extent_) {
    void* p = nullptr;
    if (kind == device) {
      EXPECT_OK(cudaMalloc3D(&memory, extent));
      return;
    }
    if (kind == pinned) EXPECT_OK(cudaMallocHost(&p, bytes()));
    if (kind == pageable) p = new unsigned char[bytes()];
    memory = make_cudaPitchedPtr(p, extent.width, extent.width, extent.height);
  }
  ~Box() {
    if (kind == device) EXPECT_OK(cudaFree(memory.ptr));
    if (kind == pinned) EXPECT_OK(cudaFreeHost(memory.ptr));
    if (kind == pageable) delete[] static_cast<unsigned char*>(memory.ptr);
  }
  std::size_t bytes() const { return extent.width * extent.height * extent.depth; }

  /// Row by row, by copies that have one dimension.
  void exchange(std::vector<unsigned char>& packed, bool write) {
    for (std::size_t row = 0; row < extent.height * extent.depth; ++row) {
      auto* here = static_cast<unsigned char*>(memory.ptr) + row * memory.pitch;
      auto* there = packed.data() + row * extent.width;
      EXPECT_OK(cudaMemcpy(write ? here : there, write ? there : here, extent.width, cudaMemcpyDefault));
    }
  }
};

static std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> values(bytes);
  for (auto& value : values) value = (seed = seed * 1664525 + 1013904223) >> 24;
  return values;
}

/// Copies `what` from one place to another and compares all bytes of the destination.
static void check(Box& to, cudaPos at, Box& from, cudaPos begin, cudaExtent what, bool async, int line) {
  const std::vector<unsigned char> source = pattern(from.bytes(), 1);
  std::vector<unsigned char> wanted = pattern(to.bytes(), 2);
  std::vector<unsigned char> in = source, out = wanted;
  from.exchange(in, true);
  to.exchange(out, true);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = from.memory, copy.dstPtr = to.memory;
  copy.srcPos = begin, copy.dstPos = at;
  copy.extent = what;
  copy.kind = cudaMemcpyDefault;
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  if (async) {
    EXPECT_OK(cudaMemcpy3DAsync(&copy, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
  } else {
    EXPECT_OK(cudaMemcpy3D(&copy));
  }
  EXPECT_OK(cudaStreamDestroy(stream));
  for (std::size_t z = 0; z < what.depth; ++z) {
    for (std::size_t y = 0; y < what.height; ++y)
      std::memcpy(&wanted[((at.z + z) * to.extent.height + at.y + y) * to.extent.width + at.x],
                  &source[((begin.z + z) * from.extent.height + begin.y + y) * from.extent.width + begin.x],
                  what.width);
  }
  to.exchange(out, false);
  expect(out == wanted, "the destination has the box and nothing else", line);
}

int main() {
  for (Kind from : {pageable, pinned, device}) {
    for (Kind to : {pageable, pinned, device}) {
      for (bool async : {false, true}) {
        Box small(from, make_cudaExtent(37, 11, 7)), large(to, make_cudaExtent(50, 9, 12));
        check(large, make_cudaPos(3, 2, 5), small, make_cudaPos(1, 4, 2), make_cudaExtent(33, 7, 5), async, __LINE__);
        check(large, make_cudaPos(0, 0, 0), small, make_cudaPos(0, 0, 0), make_cudaExtent(37, 9, 7), async, __LINE__);
        check(large, make_cudaPos(49, 8, 11), small, make_cudaPos(36, 10, 6), make_cudaExtent(1, 1, 1), async, __LINE__);
      }
    }
  }
  // Through several pieces where memory is pageable: many layers, many rows, long rows.
  for (Kind other : {pageable, device}) {
    const Kind first = other == device ? pageable : device;
    Box layers(first, make_cudaExtent(300, 100, 410)), layers2(other, make_cudaExtent(310, 101, 411));
    check(layers2, make_cudaPos(9, 1, 1), layers, make_cudaPos(0, 0, 0), make_cudaExtent(300, 100, 410), true, __LINE__);
    Box rows(first, make_cudaExtent(1000, 6100, 2)), rows2(other, make_cudaExtent(1001, 6101, 3));
    check(rows2, make_cudaPos(1, 1, 1), rows, make_cudaPos(1, 1, 0), make_cudaExtent(999, 6099, 2), false, __LINE__);
    Box wide(first, make_cudaExtent(9'000'001, 2, 1)), wide2(other, make_cudaExtent(9'000'100, 2, 2));
    check(wide2, make_cudaPos(99, 0, 1), wide, make_cudaPos(1, 0, 0), make_cudaExtent(9'000'000, 2, 1), true, __LINE__);
  }
  // The calls for two devices, which may be one.
  for (bool async : {false, true}) {
    Box one(device, make_cudaExtent(40, 10, 6)), other(device, make_cudaExtent(48, 12, 6));
    std::vector<unsigned char> source = pattern(one.bytes(), 3), got(other.bytes());
    one.exchange(source, true);
    cudaMemcpy3DPeerParms peers{};
    peers.srcPtr = one.memory, peers.dstPtr = other.memory, peers.extent = make_cudaExtent(40, 10, 5), peers.dstPos = make_cudaPos(8, 1, 1);
    EXPECT_OK(async ? cudaMemcpy3DPeerAsync(&peers, nullptr) : cudaMemcpy3DPeer(&peers));
    EXPECT_OK(cudaDeviceSynchronize());
    other.exchange(got, false);
    bool same = true;
    for (int z = 0; z < 5; ++z) {
      for (int y = 0; y < 10; ++y)
        same = same && std::memcmp(&got[((z + 1) * 12 + y + 1) * 48 + 8], &source[(z * 10 + y) * 40], 40) == 0;
    }
    EXPECT(same);
  }
  // No bytes, and rows that overlap.
  Box a(pinned, make_cudaExtent(16, 4, 4)), b(device, make_cudaExtent(16, 4, 4));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = a.memory, copy.dstPtr = b.memory, copy.extent = make_cudaExtent(16, 0, 4), copy.kind = cudaMemcpyDefault;
  EXPECT_OK(cudaMemcpy3D(&copy));
  copy.extent = make_cudaExtent(16, 4, 4), copy.srcPtr.pitch = 8;
  EXPECT(cudaMemcpy3D(&copy) != cudaSuccess);
  cudaGetLastError();
  return verdict();
}
