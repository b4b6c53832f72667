// Texture and surface objects: descriptions, refusals, and kernels that use them.
#include <array>
#include <vector>

#include "native/simulator/test/driver_test.h"

namespace {

constexpr char kRead[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry read(.param .u64 image, .param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [image];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {%r1}];
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd3, %rd3, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
.visible .entry write(.param .u64 image, .param .u32 value)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [image];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %tid.x;
  add.u32 %r1, %r1, %r2;
  shl.b32 %r2, %r2, 2;
  sust.b.1d.b32.trap [%rd1, {%r2}], %r1;
  ret;
}
)";

constexpr unsigned kWidth = 8;

CUarray makeArray(unsigned flags = 0) {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{kWidth, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, flags};
  CUarray array = nullptr;
  OK(DRIVER(cuArray3DCreate_v2)(&array, &descriptor));
  return array;
}

CUDA_RESOURCE_DESC resourceOf(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

CUDA_RESOURCE_DESC linear(CUdeviceptr memory, std::size_t bytes) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = memory;
  resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = bytes;
  return resource;
}

CUresult attempt(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& texture = {},
                 const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
  CUtexObject object = 0;
  return DRIVER(cuTexObjectCreate)(&object, &resource, &texture, view);
}

// First, because a child of a process with a driver cannot use it.
TEST_CASE("a texture whose array is destroyed is read, or is a fault") {
  unit::inChild([] {
    usePrimaryContext();
    const CUfunction read = functionOf(kRead, "read");
    const CUarray array = makeArray();
    const CUDA_RESOURCE_DESC resource = resourceOf(array);
    const CUDA_TEXTURE_DESC texture{};
    CUtexObject object = 0;
    CUdeviceptr out = 0;
    OK(DRIVER(cuMemAlloc_v2)(&out, kWidth * 4));
    OK(DRIVER(cuTexObjectCreate)(&object, &resource, &texture, nullptr));
    OK(DRIVER(cuArrayDestroy)(array));
    void* reading[] = {&object, &out};
    OK(DRIVER(cuLaunchKernel)(read, 1, 1, 1, kWidth, 1, 1, 0, nullptr, reading, nullptr));
    // An H200 still has the memory. The simulated driver finds the mistake.
    const CUresult status = DRIVER(cuCtxSynchronize)();
    CHECK((status == CUDA_SUCCESS || status == CUDA_ERROR_ILLEGAL_ADDRESS));
  });
}

TEST_CASE("an object describes itself") {
  usePrimaryContext();
  const CUarray array = makeArray();
  const CUDA_RESOURCE_DESC resource = resourceOf(array);
  CUDA_TEXTURE_DESC texture{};
  texture.addressMode[1] = CU_TR_ADDRESS_MODE_MIRROR;
  texture.flags = CU_TRSF_READ_AS_INTEGER;
  texture.maxAnisotropy = 4;
  CUtexObject object = 0;
  OK(DRIVER(cuTexObjectCreate)(&object, &resource, &texture, nullptr));
  CUDA_RESOURCE_DESC resourceBack{};
  CUDA_TEXTURE_DESC textureBack{};
  CUDA_RESOURCE_VIEW_DESC view{};
  OK(DRIVER(cuTexObjectGetResourceDesc)(&resourceBack, object));
  CHECK(resourceBack.res.array.hArray == array);
  OK(DRIVER(cuTexObjectGetTextureDesc)(&textureBack, object));
  CHECK(textureBack.addressMode[1] == CU_TR_ADDRESS_MODE_MIRROR);
  CHECK(textureBack.maxAnisotropy == 4);
  OK(DRIVER(cuTexObjectGetResourceViewDesc)(&view, object));
  OK(DRIVER(cuTexObjectDestroy)(object));
  OK(DRIVER(cuTexObjectDestroy)(object));
  OK(DRIVER(cuArrayDestroy)(array));
}

TEST_CASE("descriptions that do not fit are refused") {
  usePrimaryContext();
  const CUarray array = makeArray();
  CUdeviceptr memory = 0;
  OK(DRIVER(cuMemAlloc_v2)(&memory, 4096));
  CUDA_TEXTURE_DESC texture{};
  texture.addressMode[0] = static_cast<CUaddress_mode>(4);
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(resourceOf(array), texture));
  texture = {};
  texture.flags = 1u << 20;
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(resourceOf(array), texture));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(resourceOf(nullptr)));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(linear(memory + 4, 64)));
  OK(attempt(linear(memory, 0)));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(linear(memory, std::size_t{1} << 40)));
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = CU_RES_VIEW_FORMAT_UINT_4X32;
  view.width = kWidth;
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(resourceOf(array), {}, &view));
  view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
  OK(attempt(resourceOf(array), {}, &view));
  view.lastMipmapLevel = 1;
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(resourceOf(array), {}, &view));
  OK(DRIVER(cuMemFree_v2)(memory));
  OK(DRIVER(cuArrayDestroy)(array));
}

TEST_CASE("a texture reads what a surface wrote") {
  usePrimaryContext();
  const CUfunction read = functionOf(kRead, "read"), write = functionOf(kRead, "write");
  const CUarray array = makeArray(CUDA_ARRAY3D_SURFACE_LDST);
  const CUDA_RESOURCE_DESC resource = resourceOf(array);
  CUDA_TEXTURE_DESC texture{};
  texture.flags = CU_TRSF_READ_AS_INTEGER;
  CUtexObject object = 0;
  CUsurfObject surface = 0;
  CUdeviceptr out = 0;
  OK(DRIVER(cuMemAlloc_v2)(&out, kWidth * 4));
  OK(DRIVER(cuTexObjectCreate)(&object, &resource, &texture, nullptr));
  OK(DRIVER(cuSurfObjectCreate)(&surface, &resource));
  unsigned value = 100;
  void* writing[] = {&surface, &value};
  void* reading[] = {&object, &out};
  OK(DRIVER(cuLaunchKernel)(write, 1, 1, 1, kWidth, 1, 1, 0, nullptr, writing, nullptr));
  OK(DRIVER(cuCtxSynchronize)());
  OK(DRIVER(cuSurfObjectDestroy)(surface));
  OK(DRIVER(cuLaunchKernel)(read, 1, 1, 1, kWidth, 1, 1, 0, nullptr, reading, nullptr));
  OK(DRIVER(cuCtxSynchronize)());
  OK(DRIVER(cuTexObjectDestroy)(object));
  std::vector<unsigned> values(kWidth);
  OK(DRIVER(cuMemcpyDtoH_v2)(values.data(), out, kWidth * 4));
  CHECK(values == std::vector<unsigned>{100, 101, 102, 103, 104, 105, 106, 107});
  OK(DRIVER(cuMemFree_v2)(out));
  OK(DRIVER(cuArrayDestroy)(array));
}

}  // namespace
