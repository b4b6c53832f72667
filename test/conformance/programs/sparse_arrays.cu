// Arrays without memory of their own: what the driver says of their tiles and size, and memory that the program maps into them.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

constexpr std::size_t side = 4096;

static CUDA_ARRAY3D_DESCRIPTOR image(unsigned flags) { return {side, side, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, flags}; }

static bool has(CUdevice_attribute attribute) {
  int value = 0;
  EXPECT_DRIVER(cuDeviceGetAttribute(&value, attribute, 0));
  return value != 0;
}

/// Writes and reads one tile.
static bool works(CUarray array, std::size_t x, std::size_t y, std::size_t w, std::size_t h) {
  std::vector<unsigned> in(w * h), out(w * h);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = i * 2654435761u + x;
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = in.data(), copy.srcPitch = w * 4;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array, copy.dstXInBytes = x * 4, copy.dstY = y;
  copy.WidthInBytes = w * 4, copy.Height = h;
  EXPECT_DRIVER(cuMemcpy2D(&copy));
  copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = array, copy.srcXInBytes = x * 4, copy.srcY = y;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = out.data(), copy.dstPitch = w * 4;
  copy.WidthInBytes = w * 4, copy.Height = h;
  EXPECT_DRIVER(cuMemcpy2D(&copy));
  return in == out;
}

static void sparse() {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = image(CUDA_ARRAY3D_SPARSE);
  CUarray array = nullptr;
  EXPECT_DRIVER(cuArray3DCreate(&array, &descriptor));
  CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
  EXPECT_DRIVER(cuArrayGetSparseProperties(&tiles, array));
  const std::size_t w = tiles.tileExtent.width, h = tiles.tileExtent.height;
  EXPECT(w > 0 && h > 0 && tiles.tileExtent.depth == 1);
  if (w == 0 || h == 0) return;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
  std::size_t bytes = 0;
  EXPECT_DRIVER(cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUmemGenericAllocationHandle memory = 0;
  EXPECT_DRIVER(cuMemCreate(&memory, bytes, &properties, 0));
  CUarrayMapInfo info{};
  info.resourceType = CU_RESOURCE_TYPE_ARRAY, info.resource.array = array;
  info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
  info.subresource.sparseLevel.offsetX = w, info.subresource.sparseLevel.offsetY = h;
  info.subresource.sparseLevel.extentWidth = w, info.subresource.sparseLevel.extentHeight = h;
  info.subresource.sparseLevel.extentDepth = 1;
  info.memOperationType = CU_MEM_OPERATION_TYPE_MAP, info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
  info.memHandle.memHandle = memory, info.deviceBitMask = 1;
  CUstream stream = nullptr;
  EXPECT_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_DRIVER(cuMemMapArrayAsync(&info, 1, stream));
  EXPECT_DRIVER(cuStreamSynchronize(stream));
  EXPECT(works(array, w, h, w, h));
  EXPECT_DRIVER(cuMemRelease(memory));
  EXPECT(works(array, w, h, w, h));
  info.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP, info.memHandle.memHandle = 0;
  EXPECT_DRIVER(cuMemMapArrayAsync(&info, 1, stream));
  EXPECT_DRIVER(cuStreamSynchronize(stream));
  EXPECT_DRIVER(cuStreamDestroy(stream));
  EXPECT_DRIVER(cuArrayDestroy(array));
  CUmipmappedArray mipmap = nullptr;
  EXPECT_DRIVER(cuMipmappedArrayCreate(&mipmap, &descriptor, 5));
  EXPECT_DRIVER(cuMipmappedArrayGetSparseProperties(&tiles, mipmap));
  EXPECT(tiles.tileExtent.width == w && tiles.tileExtent.height == h);
  EXPECT_DRIVER(cuMipmappedArrayDestroy(mipmap));
}

static void deferred() {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = image(CUDA_ARRAY3D_DEFERRED_MAPPING);
  CUarray array = nullptr;
  CUmipmappedArray mipmap = nullptr;
  CUDA_ARRAY_MEMORY_REQUIREMENTS required{}, ofLevels{};
  EXPECT_DRIVER(cuArray3DCreate(&array, &descriptor));
  EXPECT_DRIVER(cuArrayGetMemoryRequirements(&required, array, 0));
  EXPECT(required.size >= side * side * 4 && required.size < side * side * 5 && required.alignment > 0);
  EXPECT_DRIVER(cuMipmappedArrayCreate(&mipmap, &descriptor, 3));
  EXPECT_DRIVER(cuMipmappedArrayGetMemoryRequirements(&ofLevels, mipmap, 0));
  EXPECT(ofLevels.size >= side * side * 21 / 4 && ofLevels.size < side * side * 7);
  EXPECT_DRIVER(cuMipmappedArrayDestroy(mipmap));
  EXPECT_DRIVER(cuArrayDestroy(array));
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  if (has(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED)) sparse();
  if (has(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED)) deferred();
  // Of an array with memory of its own, the driver says neither.
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = image(0);
  CUarray array = nullptr;
  EXPECT_DRIVER(cuArray3DCreate(&array, &descriptor));
  CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
  CUDA_ARRAY_MEMORY_REQUIREMENTS required{};
  EXPECT(cuArrayGetSparseProperties(&tiles, array) != CUDA_SUCCESS);
  EXPECT(cuArrayGetMemoryRequirements(&required, array, 0) != CUDA_SUCCESS);
  EXPECT_DRIVER(cuArrayDestroy(array));
  return verdict();
}
