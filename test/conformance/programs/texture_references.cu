// Texture and surface references of before CUDA 5: their properties, and kernels that read and write arrays through those of a module. The simulated driver has none.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

constexpr int w = 32, h = 16;

static const char* const kImage = R"(
.version 7.0
.target sm_80
.address_size 64
.global .texref image;
.global .surfref canvas;
.visible .entry read(.param .u64 to) {
  .reg .b32 %r<3>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1, %r2}];
  mad.lo.u32 %r2, %r2, 32, %r1;
  ld.param.u64 %rd1, [to];
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f1;
  ret;
}
.visible .entry write() {
  .reg .b32 %r<5>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 1000, %r1;
  shl.b32 %r4, %r1, 2;
  sust.b.2d.b32.trap [canvas, {%r4, %r2}], %r3;
  ret;
}
)";

/// What is set is what is asked for.
static void properties(CUtexref reference) {
  CUarray_format format{};
  CUaddress_mode address{};
  CUfilter_mode filter{};
  int channels = 0, anisotropy = 0;
  unsigned flags = 0;
  float bias = 0, low = 0, high = 0, colour[4] = {0.5f, 0.25f, 1, 0}, seen[4] = {};
  EXPECT_DRIVER(cuTexRefSetFormat(reference, CU_AD_FORMAT_HALF, 2));
  EXPECT_DRIVER(cuTexRefGetFormat(&format, &channels, reference));
  EXPECT(format == CU_AD_FORMAT_HALF && channels == 2);
  EXPECT_DRIVER(cuTexRefSetAddressMode(reference, 1, CU_TR_ADDRESS_MODE_BORDER));
  EXPECT_DRIVER(cuTexRefGetAddressMode(&address, reference, 1));
  EXPECT(address == CU_TR_ADDRESS_MODE_BORDER);
  EXPECT_DRIVER(cuTexRefSetFilterMode(reference, CU_TR_FILTER_MODE_LINEAR));
  EXPECT_DRIVER(cuTexRefGetFilterMode(&filter, reference));
  EXPECT(filter == CU_TR_FILTER_MODE_LINEAR);
  EXPECT_DRIVER(cuTexRefSetMipmapFilterMode(reference, CU_TR_FILTER_MODE_LINEAR));
  EXPECT_DRIVER(cuTexRefGetMipmapFilterMode(&filter, reference));
  EXPECT(filter == CU_TR_FILTER_MODE_LINEAR);
  EXPECT_DRIVER(cuTexRefSetMipmapLevelBias(reference, 1.5f));
  EXPECT_DRIVER(cuTexRefGetMipmapLevelBias(&bias, reference));
  EXPECT(bias == 1.5f);
  EXPECT_DRIVER(cuTexRefSetMipmapLevelClamp(reference, 1, 3));
  EXPECT_DRIVER(cuTexRefGetMipmapLevelClamp(&low, &high, reference));
  EXPECT(low == 1 && high == 3);
  EXPECT_DRIVER(cuTexRefSetMaxAnisotropy(reference, 4));
  EXPECT_DRIVER(cuTexRefGetMaxAnisotropy(&anisotropy, reference));
  EXPECT(anisotropy == 4);
  EXPECT_DRIVER(cuTexRefSetBorderColor(reference, colour));
  EXPECT_DRIVER(cuTexRefGetBorderColor(seen, reference));
  EXPECT(std::memcmp(seen, colour, sizeof seen) == 0);
  EXPECT_DRIVER(cuTexRefSetFlags(reference, CU_TRSF_NORMALIZED_COORDINATES));
  EXPECT_DRIVER(cuTexRefGetFlags(&flags, reference));
  EXPECT(flags == CU_TRSF_NORMALIZED_COORDINATES);
}

/// Memory and arrays, and the same array comes back.
static void bindings(CUtexref reference, CUarray array) {
  CUdeviceptr memory = 0, bound = 0;
  std::size_t offset = 1;
  CUarray seen = nullptr;
  CUmipmappedArray mipmap = nullptr, seenMipmap = nullptr;
  EXPECT_DRIVER(cuMemAlloc(&memory, 65536));
  EXPECT_DRIVER(cuTexRefSetFormat(reference, CU_AD_FORMAT_FLOAT, 1));
  EXPECT_DRIVER(cuTexRefSetAddress(&offset, reference, memory, 4096));
  EXPECT_DRIVER(cuTexRefGetAddress(&bound, reference));
  EXPECT(offset == 0 && bound == memory);
  const CUDA_ARRAY_DESCRIPTOR rows{64, 16, CU_AD_FORMAT_FLOAT, 1};
  EXPECT_DRIVER(cuTexRefSetAddress2D(reference, &rows, memory, 512));
  EXPECT_DRIVER(cuTexRefGetAddress(&bound, reference));
  EXPECT(bound == memory);
  EXPECT_DRIVER(cuTexRefSetArray(reference, array, CU_TRSA_OVERRIDE_FORMAT));
  EXPECT_DRIVER(cuTexRefGetArray(&seen, reference));
  EXPECT(seen == array);
  const CUDA_ARRAY3D_DESCRIPTOR levels{w, h, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  EXPECT_DRIVER(cuMipmappedArrayCreate(&mipmap, &levels, 3));
  EXPECT_DRIVER(cuTexRefSetMipmappedArray(reference, mipmap, CU_TRSA_OVERRIDE_FORMAT));
  EXPECT_DRIVER(cuTexRefGetMipmappedArray(&seenMipmap, reference));
  EXPECT(seenMipmap == mipmap);
  EXPECT_DRIVER(cuMipmappedArrayDestroy(mipmap));
  EXPECT_DRIVER(cuMemFree(memory));
}

static void kernels(CUarray array) {
  CUmodule module = nullptr;
  CUfunction read = nullptr, write = nullptr;
  CUtexref image = nullptr;
  CUsurfref canvas = nullptr;
  CUarray seen = nullptr;
  CUdeviceptr to = 0;
  EXPECT_DRIVER(cuModuleLoadData(&module, kImage));
  EXPECT_DRIVER(cuModuleGetFunction(&read, module, "read"));
  EXPECT_DRIVER(cuModuleGetFunction(&write, module, "write"));
  EXPECT_DRIVER(cuModuleGetTexRef(&image, module, "image"));
  EXPECT_DRIVER(cuModuleGetSurfRef(&canvas, module, "canvas"));
  EXPECT(cuModuleGetTexRef(&image, module, "nothing") == CUDA_ERROR_NOT_FOUND);
  EXPECT_DRIVER(cuMemAlloc(&to, w * h * 4));
  std::vector<float> values(w * h), out(w * h);
  for (int i = 0; i < w * h; ++i) values[i] = i * 0.5f;
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = values.data(), copy.srcPitch = w * 4;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array;
  copy.WidthInBytes = w * 4, copy.Height = h;
  EXPECT_DRIVER(cuMemcpy2D(&copy));
  EXPECT_DRIVER(cuTexRefSetArray(image, array, CU_TRSA_OVERRIDE_FORMAT));
  EXPECT_DRIVER(cuParamSetTexRef(read, CU_PARAM_TR_DEFAULT, image));
  void* arguments[] = {&to};
  EXPECT_DRIVER(cuLaunchKernel(read, h, 1, 1, w, 1, 1, 0, nullptr, arguments, nullptr));
  EXPECT_DRIVER(cuMemcpyDtoH(out.data(), to, w * h * 4));
  EXPECT(out == values);
  EXPECT_DRIVER(cuSurfRefSetArray(canvas, array, 0));
  EXPECT_DRIVER(cuSurfRefGetArray(&seen, canvas));
  EXPECT(seen == array);
  EXPECT_DRIVER(cuLaunchKernel(write, h, 1, 1, w, 1, 1, 0, nullptr, nullptr, nullptr));
  std::vector<int> drawn(w * h);
  copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = array;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = drawn.data(), copy.dstPitch = w * 4;
  copy.WidthInBytes = w * 4, copy.Height = h;
  EXPECT_DRIVER(cuMemcpy2D(&copy));
  bool same = true;
  for (int i = 0; i < w * h; ++i) same = same && drawn[i] == i / w * 1000 + i % w;
  EXPECT(same);
  EXPECT_DRIVER(cuMemFree(to));
  EXPECT_DRIVER(cuModuleUnload(module));
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  CUtexref reference = nullptr;
  const CUresult made = cuTexRefCreate(&reference);
  if (made == CUDA_ERROR_NOT_SUPPORTED) return verdict();
  EXPECT(made == CUDA_SUCCESS);
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{w, h, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};
  EXPECT_DRIVER(cuArray3DCreate(&array, &descriptor));
  properties(reference);
  bindings(reference, array);
  EXPECT_DRIVER(cuTexRefDestroy(reference));
  kernels(array);
  EXPECT_DRIVER(cuArrayDestroy(array));
  return verdict();
}
