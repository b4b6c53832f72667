// What the driver says of texture and surface objects: the descriptions from which they were made, with the program's own arrays; and what it refuses.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

static CUDA_TEXTURE_DESC clamped() {
  CUDA_TEXTURE_DESC texture{};
  for (CUaddress_mode& mode : texture.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
  texture.filterMode = CU_TR_FILTER_MODE_POINT;
  texture.flags = CU_TRSF_READ_AS_INTEGER;
  return texture;
}

__global__ void read(cudaTextureObject_t texture, cudaSurfaceObject_t surface, int* out) {
  const int x = threadIdx.x;
  out[x] = tex2D<int>(texture, x, 3) + 1;
  surf2Dwrite(x * 5, surface, x * 4, 0);
}

static void ofArrays() {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{32, 16, 0, CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST};
  CUarray array = nullptr;
  EXPECT_DRIVER(cuArray3DCreate(&array, &descriptor));
  std::vector<int> values(32 * 16);
  for (int i = 0; i < 32 * 16; ++i) values[i] = i;
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = values.data(), copy.srcPitch = 128;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array;
  copy.WidthInBytes = 128, copy.Height = 16;
  EXPECT_DRIVER(cuMemcpy2D(&copy));
  CUDA_RESOURCE_DESC resource{}, seen{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY, resource.res.array.hArray = array;
  const CUDA_TEXTURE_DESC texture = clamped();
  CUDA_TEXTURE_DESC seenTexture{};
  CUtexObject object = 0;
  CUsurfObject surface = 0;
  EXPECT_DRIVER(cuTexObjectCreate(&object, &resource, &texture, nullptr));
  EXPECT_DRIVER(cuSurfObjectCreate(&surface, &resource));
  EXPECT_DRIVER(cuTexObjectGetResourceDesc(&seen, object));
  EXPECT(seen.resType == CU_RESOURCE_TYPE_ARRAY && seen.res.array.hArray == array);
  seen = {};
  EXPECT_DRIVER(cuSurfObjectGetResourceDesc(&seen, surface));
  EXPECT(seen.resType == CU_RESOURCE_TYPE_ARRAY && seen.res.array.hArray == array);
  EXPECT_DRIVER(cuTexObjectGetTextureDesc(&seenTexture, object));
  EXPECT(seenTexture.addressMode[0] == CU_TR_ADDRESS_MODE_CLAMP && seenTexture.flags == CU_TRSF_READ_AS_INTEGER);
  int* device = nullptr;
  EXPECT_OK(cudaMalloc(&device, 128));
  read<<<1, 32>>>(object, surface, device);
  std::vector<int> out(32), drawn(32);
  EXPECT_OK(cudaMemcpy(out.data(), device, 128, cudaMemcpyDefault));
  EXPECT_DRIVER(cuMemcpyAtoH(drawn.data(), array, 0, 128));
  bool same = true;
  for (int i = 0; i < 32; ++i) same = same && out[i] == 96 + i + 1 && drawn[i] == i * 5;
  EXPECT(same);
  EXPECT_OK(cudaFree(device));
  EXPECT_DRIVER(cuTexObjectDestroy(object));
  EXPECT_DRIVER(cuSurfObjectDestroy(surface));
  EXPECT_DRIVER(cuArrayDestroy(array));
}

/// A view of some levels.
static void ofMipmaps() {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmipmappedArray mipmap = nullptr;
  EXPECT_DRIVER(cuMipmappedArrayCreate(&mipmap, &descriptor, 4));
  CUDA_RESOURCE_DESC resource{}, seen{};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, resource.res.mipmap.hMipmappedArray = mipmap;
  CUDA_TEXTURE_DESC texture = clamped();
  texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
  CUDA_RESOURCE_VIEW_DESC view{}, seenView{};
  view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32;
  view.width = view.height = 64;
  view.firstMipmapLevel = 0, view.lastMipmapLevel = 2;
  CUtexObject object = 0;
  EXPECT_DRIVER(cuTexObjectCreate(&object, &resource, &texture, &view));
  EXPECT_DRIVER(cuTexObjectGetResourceDesc(&seen, object));
  EXPECT(seen.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY && seen.res.mipmap.hMipmappedArray == mipmap);
  EXPECT_DRIVER(cuTexObjectGetResourceViewDesc(&seenView, object));
  EXPECT(seenView.format == view.format && seenView.width == 64 && seenView.lastMipmapLevel == 2);
  EXPECT_DRIVER(cuTexObjectDestroy(object));
  EXPECT_DRIVER(cuMipmappedArrayDestroy(mipmap));
}

static void ofMemory() {
  CUdeviceptr memory = 0;
  EXPECT_DRIVER(cuMemAlloc(&memory, 4096));
  CUDA_RESOURCE_DESC resource{}, seen{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = memory, resource.res.linear.format = CU_AD_FORMAT_SIGNED_INT32;
  resource.res.linear.numChannels = 1, resource.res.linear.sizeInBytes = 4096;
  const CUDA_TEXTURE_DESC texture = clamped();
  CUtexObject object = 0;
  EXPECT_DRIVER(cuTexObjectCreate(&object, &resource, &texture, nullptr));
  EXPECT_DRIVER(cuTexObjectGetResourceDesc(&seen, object));
  EXPECT(seen.resType == CU_RESOURCE_TYPE_LINEAR && seen.res.linear.devPtr == memory && seen.res.linear.sizeInBytes == 4096);
  EXPECT_DRIVER(cuTexObjectDestroy(object));
  CUsurfObject surface = 0;
  EXPECT(cuSurfObjectCreate(&surface, &resource) != CUDA_SUCCESS);
  resource.resType = static_cast<CUresourcetype>(17);
  EXPECT(cuTexObjectCreate(&object, &resource, &texture, nullptr) != CUDA_SUCCESS);
  EXPECT(cuTexObjectCreate(&object, nullptr, &texture, nullptr) != CUDA_SUCCESS);
  EXPECT_DRIVER(cuMemFree(memory));
  std::size_t most = 0;
  EXPECT_DRIVER(cuDeviceGetTexture1DLinearMaxWidth(&most, CU_AD_FORMAT_FLOAT, 4, 0));
  EXPECT(most >= 1u << 27);
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  ofArrays();
  ofMipmaps();
  ofMemory();
  return verdict();
}
