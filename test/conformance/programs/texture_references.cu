// Texture and surface references, which only PTX and the driver API still have: bound to arrays and memory, asked about, used by kernels.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

static const char* const kModule = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .texref image;
.visible .global .surfref canvas;
.visible .entry read(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  cvt.rn.f32.u32 %f1, %r1;
  add.f32 %f1, %f1, 0f3F000000;
  mov.f32 %f2, 0f3F000000;
  tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [image, {%f1, %f2}];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd2, %rd2, %rd1;
  st.global.f32 [%rd2], %f3;
  ret;
}
.visible .entry fetch(.param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  tex.1d.v4.s32.s32 {%r2, %r3, %r4, %r5}, [image, {%r1}];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd2, %rd2, %rd1;
  st.global.u32 [%rd2], %r2;
  ret;
}
.visible .entry write()
{
  .reg .b32 %r<4>;
  .reg .f32 %f<2>;
  mov.u32 %r1, %tid.x;
  cvt.rn.f32.u32 %f1, %r1;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, 1;
  sust.b.2d.b32.trap [canvas, {%r2, %r3}], %f1;
  ret;
}
)";

constexpr int kWidth = 16;

static void launch(CUmodule module, const char* name, CUdeviceptr out) {
  CUfunction function = nullptr;
  void* parameters[] = {&out};
  EXPECT_DRIVER(cuModuleGetFunction(&function, module, name));
  CUtexref image = nullptr;
  EXPECT_DRIVER(cuModuleGetTexRef(&image, module, "image"));
  EXPECT_DRIVER(cuParamSetTexRef(function, CU_PARAM_TR_DEFAULT, image));
  EXPECT_DRIVER(cuLaunchKernel(function, 1, 1, 1, kWidth, 1, 1, 0, nullptr, parameters, nullptr));
  EXPECT_DRIVER(cuCtxSynchronize());
}

static void colours(CUtexref reference) {
  float given[] = {0.25f, 0.5f, 0.75f, 1}, got[4] = {};
  int anisotropy = 0;
  EXPECT_DRIVER(cuTexRefSetBorderColor(reference, given));
  EXPECT_DRIVER(cuTexRefGetBorderColor(got, reference));
  EXPECT(std::memcmp(given, got, sizeof got) == 0);
  EXPECT_DRIVER(cuTexRefSetMaxAnisotropy(reference, 4));
  EXPECT_DRIVER(cuTexRefGetMaxAnisotropy(&anisotropy, reference));
  EXPECT(anisotropy == 4);
}

static void levels(CUtexref reference) {
  CUfilter_mode filter{};
  float least = 0, most = 0;
  EXPECT_DRIVER(cuTexRefSetMipmapFilterMode(reference, CU_TR_FILTER_MODE_LINEAR));
  EXPECT_DRIVER(cuTexRefGetMipmapFilterMode(&filter, reference));
  EXPECT_DRIVER(cuTexRefSetMipmapLevelClamp(reference, 1, 3.5f));
  EXPECT_DRIVER(cuTexRefGetMipmapLevelClamp(&least, &most, reference));
  EXPECT(filter == CU_TR_FILTER_MODE_LINEAR && least == 1 && most == 3.5f);
}

static void questions() {
  CUtexref reference = nullptr;
  CUaddress_mode mode{};
  CUfilter_mode filter{};
  CUarray_format format{};
  int channels = 0;
  unsigned flags = 0;
  float bias = 0;
  EXPECT_DRIVER(cuTexRefCreate(&reference));
  EXPECT_DRIVER(cuTexRefSetAddressMode(reference, 1, CU_TR_ADDRESS_MODE_MIRROR));
  EXPECT_DRIVER(cuTexRefSetFilterMode(reference, CU_TR_FILTER_MODE_LINEAR));
  EXPECT_DRIVER(cuTexRefSetFormat(reference, CU_AD_FORMAT_SIGNED_INT16, 2));
  EXPECT_DRIVER(cuTexRefSetFlags(reference, CU_TRSF_NORMALIZED_COORDINATES));
  EXPECT_DRIVER(cuTexRefSetMipmapLevelBias(reference, 1.5f));
  EXPECT_DRIVER(cuTexRefGetAddressMode(&mode, reference, 1));
  EXPECT_DRIVER(cuTexRefGetFilterMode(&filter, reference));
  EXPECT_DRIVER(cuTexRefGetFormat(&format, &channels, reference));
  EXPECT_DRIVER(cuTexRefGetFlags(&flags, reference));
  EXPECT_DRIVER(cuTexRefGetMipmapLevelBias(&bias, reference));
  EXPECT(mode == CU_TR_ADDRESS_MODE_MIRROR && filter == CU_TR_FILTER_MODE_LINEAR);
  EXPECT(format == CU_AD_FORMAT_SIGNED_INT16 && channels == 2);
  EXPECT((flags & CU_TRSF_NORMALIZED_COORDINATES) != 0 && bias == 1.5f);
  colours(reference);
  levels(reference);
  EXPECT_DRIVER(cuTexRefDestroy(reference));
}

static void mipmappedArray() {
  CUtexref reference = nullptr;
  CUmipmappedArray mipmaps = nullptr, bound = nullptr;
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  EXPECT_DRIVER(cuMipmappedArrayCreate(&mipmaps, &descriptor, 3));
  EXPECT_DRIVER(cuTexRefCreate(&reference));
  EXPECT_DRIVER(cuTexRefSetMipmappedArray(reference, mipmaps, CU_TRSA_OVERRIDE_FORMAT));
  EXPECT_DRIVER(cuTexRefGetMipmappedArray(&bound, reference));
  EXPECT(bound == mipmaps);
  EXPECT(cuTexRefGetArray(&array, reference) != CUDA_SUCCESS);
  EXPECT_DRIVER(cuTexRefDestroy(reference));
  EXPECT_DRIVER(cuMipmappedArrayDestroy(mipmaps));
}

extern "C" CUresult cuTexRefSetAddress2D_v2(CUtexref, const CUDA_ARRAY_DESCRIPTOR*, CUdeviceptr, std::size_t);

static void pitchedMemory() {
  CUtexref reference = nullptr;
  CUdeviceptr memory = 0, bound = 0;
  std::size_t pitch = 0;
  EXPECT_DRIVER(cuMemAllocPitch(&memory, &pitch, 64, 8, 4));
  EXPECT_DRIVER(cuTexRefCreate(&reference));
  const CUDA_ARRAY_DESCRIPTOR descriptor{16, 8, CU_AD_FORMAT_FLOAT, 1};
  EXPECT_DRIVER(cuTexRefSetAddress2D_v2(reference, &descriptor, memory, pitch));
  EXPECT_DRIVER(cuTexRefSetAddress2D(reference, &descriptor, memory, pitch));
  EXPECT_DRIVER(cuTexRefGetAddress(&bound, reference));
  EXPECT(bound == memory);
  EXPECT_DRIVER(cuTexRefDestroy(reference));
  EXPECT_DRIVER(cuMemFree(memory));
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  CUmodule module = nullptr;
  CUtexref image = nullptr;
  CUsurfref canvas = nullptr;
  CUdeviceptr out = 0, memory = 0;
  EXPECT_DRIVER(cuModuleLoadData(&module, kModule));
  EXPECT_DRIVER(cuModuleGetTexRef(&image, module, "image"));
  EXPECT_DRIVER(cuModuleGetSurfRef(&canvas, module, "canvas"));
  EXPECT(cuModuleGetTexRef(&image, module, "nothing") != CUDA_SUCCESS);
  EXPECT_DRIVER(cuMemAlloc(&out, kWidth * 4));

  const CUDA_ARRAY3D_DESCRIPTOR descriptor{kWidth, 2, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};
  CUarray array = nullptr, bound = nullptr;
  EXPECT_DRIVER(cuArray3DCreate(&array, &descriptor));
  std::vector<float> values(kWidth), got(kWidth);
  for (int i = 0; i < kWidth; ++i) values[i] = i * 1.25f;
  EXPECT_DRIVER(cuMemcpyHtoA(array, 0, values.data(), kWidth * 4));
  EXPECT_DRIVER(cuTexRefSetAddressMode(image, 0, CU_TR_ADDRESS_MODE_CLAMP));
  EXPECT_DRIVER(cuTexRefSetAddressMode(image, 1, CU_TR_ADDRESS_MODE_CLAMP));
  EXPECT_DRIVER(cuTexRefSetFilterMode(image, CU_TR_FILTER_MODE_POINT));
  EXPECT_DRIVER(cuTexRefSetArray(image, array, CU_TRSA_OVERRIDE_FORMAT));
  EXPECT_DRIVER(cuTexRefGetArray(&bound, image));
  EXPECT(bound == array);
  launch(module, "read", out);
  EXPECT_DRIVER(cuMemcpyDtoH(got.data(), out, kWidth * 4));
  EXPECT(got == values);

  EXPECT_DRIVER(cuSurfRefSetArray(canvas, array, 0));
  EXPECT_DRIVER(cuSurfRefGetArray(&bound, canvas));
  EXPECT(bound == array);
  launch(module, "write", out);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcY = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = got.data();
  copy.WidthInBytes = kWidth * 4;
  copy.Height = 1;
  EXPECT_DRIVER(cuMemcpy2D(&copy));
  for (int i = 0; i < kWidth; ++i) EXPECT(got[i] == float(i));

  std::vector<int> numbers(kWidth), back(kWidth);
  for (int i = 0; i < kWidth; ++i) numbers[i] = 7 * i - 3;
  CUdeviceptr address = 0;
  std::size_t offset = 1;
  EXPECT_DRIVER(cuMemAlloc(&memory, kWidth * 4));
  EXPECT_DRIVER(cuMemcpyHtoD(memory, numbers.data(), kWidth * 4));
  EXPECT_DRIVER(cuTexRefSetFormat(image, CU_AD_FORMAT_SIGNED_INT32, 1));
  EXPECT_DRIVER(cuTexRefSetFlags(image, CU_TRSF_READ_AS_INTEGER));
  EXPECT_DRIVER(cuTexRefSetAddress(&offset, image, memory, kWidth * 4));
  EXPECT_DRIVER(cuTexRefGetAddress(&address, image));
  EXPECT(offset == 0 && address == memory);
  launch(module, "fetch", out);
  EXPECT_DRIVER(cuMemcpyDtoH(back.data(), out, kWidth * 4));
  EXPECT(back == numbers);

  questions();
  mipmappedArray();
  pitchedMemory();
  EXPECT_DRIVER(cuModuleUnload(module));
  EXPECT_DRIVER(cuArrayDestroy(array));
  EXPECT_DRIVER(cuMemFree(memory));
  EXPECT_DRIVER(cuMemFree(out));
  return verdict();
}
