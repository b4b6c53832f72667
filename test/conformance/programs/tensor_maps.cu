// Tensor maps: a kernel loads tiles by them, in rows and columns and in pixels of an image, also of memory that replaced the first. Without support the program ends.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "stream_memory.h"

const char kKernels[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry tiled(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y)
{
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<12>;
  .shared .align 128 .b8 tile[1024];
  .shared .align 8 .b64 bar;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mov.u32 %r3, bar;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [%r3], 1;
  fence.proxy.async;
READY:
  bar.sync 0;
  @%p1 bra WAIT;
  ld.param.u32 %r4, [x];
  ld.param.u32 %r5, [y];
  mov.b64 %rd1, map;
  cvta.param.u64 %rd2, %rd1;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd2, {%r4, %r5}], [%r3];
  mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r3], 1024;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
  @!%p2 bra WAIT;
  shl.b32 %r6, %r1, 2;
  add.u32 %r7, %r2, %r6;
  ld.shared.b32 %r8, [%r7];
  ld.param.u64 %rd4, [out];
  mul.wide.u32 %rd5, %r1, 4;
  add.u64 %rd6, %rd4, %rd5;
  st.global.b32 [%rd6], %r8;
  ret;
}
.visible .entry pixels(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 w, .param .u32 h)
{
  .reg .pred %p<3>;
  .reg .b16 %h<2>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<12>;
  .shared .align 128 .b8 tile[1024];
  .shared .align 8 .b64 bar;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mov.u32 %r3, bar;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [%r3], 1;
  fence.proxy.async;
READY:
  bar.sync 0;
  @%p1 bra WAIT;
  ld.param.u32 %r4, [w];
  ld.param.u32 %r5, [h];
  mov.u32 %r9, 0;
  mov.u16 %h1, 0;
  mov.b64 %rd1, map;
  cvta.param.u64 %rd2, %rd1;
  cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r2], [%rd2, {%r9, %r4, %r5, %r9}], [%r3], {%h1, %h1};
  mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r3], 1024;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
  @!%p2 bra WAIT;
  shl.b32 %r6, %r1, 2;
  add.u32 %r7, %r2, %r6;
  ld.shared.b32 %r8, [%r7];
  ld.param.u64 %rd4, [out];
  mul.wide.u32 %rd5, %r1, 4;
  add.u64 %rd6, %rd4, %rd5;
  st.global.b32 [%rd6], %r8;
  ret;
}
)";

constexpr unsigned kWidth = 64, kHeight = 32, kTileWidth = 32, kTileHeight = 8, kTile = kTileWidth * kTileHeight;
constexpr unsigned kChannels = 8;

/// Numbers from `first` on.
CUdeviceptr numbers(unsigned first, unsigned count) {
  std::vector<unsigned> host(count);
  for (unsigned i = 0; i < count; ++i) host[i] = first + i;
  CUdeviceptr memory = 0;
  OK(cuMemAlloc(&memory, count * 4));
  OK(cuMemcpyHtoD(memory, host.data(), count * 4));
  return memory;
}

CUresult encodeTiled(CUtensorMap& map, CUdeviceptr memory) {
  const cuuint64_t extents[] = {kWidth, kHeight}, strides[] = {kWidth * 4};
  const cuuint32_t box[] = {kTileWidth, kTileHeight}, steps[] = {1, 1};
  return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, reinterpret_cast<void*>(memory), extents, strides, box, steps,
                                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/// An image of 16 by 16 pixels with eight channels; the box around each pixel is the whole image.
CUresult encodePixels(CUtensorMap& map, CUdeviceptr memory) {
  const cuuint64_t extents[] = {kChannels, 16, 16, 1}, strides[] = {kChannels * 4, kChannels * 64, kChannels * 1024};
  const int lower[] = {0, 0}, upper[] = {0, 0};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  return cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, reinterpret_cast<void*>(memory), extents, strides, lower, upper,
                                 kChannels, kTile / kChannels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                 CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

std::vector<unsigned> load(CUfunction kernel, CUtensorMap map, unsigned x, unsigned y) {
  std::vector<unsigned> host(kTile);
  CUdeviceptr out = 0;
  OK(cuMemAlloc(&out, kTile * 4));
  void* arguments[] = {&map, &out, &x, &y};
  OK(cuLaunchKernel(kernel, 1, 1, 1, kTile, 1, 1, 0, nullptr, arguments, nullptr));
  OK(cuMemcpyDtoH(host.data(), out, kTile * 4));
  OK(cuMemFree(out));
  return host;
}

/// The tile at (x, y) of numbers from `first` on; 0 beyond the last row.
std::vector<unsigned> tile(unsigned first, unsigned x, unsigned y) {
  std::vector<unsigned> host(kTile);
  for (unsigned i = 0; i < kTile; ++i) {
    const unsigned column = x + i % kTileWidth, row = y + i / kTileWidth;
    host[i] = row < kHeight ? first + row * kWidth + column : 0;
  }
  return host;
}

void tiles(CUmodule module) {
  CUfunction kernel = nullptr;
  CUtensorMap map;
  const CUdeviceptr memory = numbers(1000, kWidth * kHeight), other = numbers(50'000, kWidth * kHeight);
  OK(cuModuleGetFunction(&kernel, module, "tiled"));
  OK(encodeTiled(map, memory));
  EXPECT(load(kernel, map, 0, 0) == tile(1000, 0, 0));
  EXPECT(load(kernel, map, 20, 9) == tile(1000, 20, 9));
  EXPECT(load(kernel, map, 32, 28) == tile(1000, 32, 28));
  OK(cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(other)));
  EXPECT(load(kernel, map, 4, 3) == tile(50'000, 4, 3));
  EXPECT(cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(other + 4)) != CUDA_SUCCESS);
  OK(cuMemFree(memory));
  OK(cuMemFree(other));
}

void pixels(CUmodule module) {
  CUfunction kernel = nullptr;
  CUtensorMap map;
  const CUdeviceptr memory = numbers(7, kChannels * 256);
  std::vector<unsigned> wanted(kTile);
  for (unsigned i = 0; i < kTile; ++i) wanted[i] = 7 + (3 * 16 + 10) * kChannels + i;  // on into the next row
  OK(cuModuleGetFunction(&kernel, module, "pixels"));
  OK(encodePixels(map, memory));
  EXPECT(load(kernel, map, 10, 3) == wanted);
  OK(cuMemFree(memory));
}

int main() {
  useContext();
  int major = 0;
  CUtensorMap map;
  CUmodule module = nullptr;
  OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  CUdeviceptr memory = numbers(0, kWidth * kHeight);
  const CUresult supported = encodeTiled(map, memory);
  OK(cuMemFree(memory));
  if (major < 9 || supported == CUDA_ERROR_NOT_SUPPORTED) return verdict();
  OK(cuModuleLoadData(&module, kKernels));
  tiles(module);
  pixels(module);
  OK(cuModuleUnload(module));
  return verdict();
}
