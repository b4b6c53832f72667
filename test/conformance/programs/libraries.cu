// Libraries and their kernels, which belong to no context: names, parameters, attributes, launch by the kernel's handle.
// conformance: flags=-lcuda
#include "show_driver.h"

static const char kImage[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .align 8 .b8 table[24];
.visible .entry first(.param .u8 a, .param .u64 b, .param .align 4 .b8 c[12])
{
  .reg .u64 %rd<2>;
  .reg .u32 %r<3>;
  .reg .u16 %h<2>;
  ld.param.u8 %h1, [a];
  ld.param.u64 %rd1, [b];
  ld.param.u32 %r1, [c+8];
  cvt.u32.u16 %r2, %h1;
  add.u32 %r1, %r1, %r2;
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry second()
.maxntid 64, 1, 1
{
  ret;
}
)";

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  SHOW(cuInit(0));
  SHOW(cuDeviceGet(&device, 0));
  CUlibrary library = nullptr;
  CUkernel first = nullptr, second = nullptr, both[2] = {};
  unsigned count = 0;
  SHOW(cuLibraryLoadData(&library, kImage, nullptr, nullptr, 0, nullptr, nullptr, 0));
  SHOW(cuDevicePrimaryCtxRetain(&context, device));
  SHOW(cuCtxSetCurrent(context));
  SHOW(cuLibraryGetKernelCount(&count, library));
  SHOW(cuLibraryEnumerateKernels(both, 2, library));
  std::printf("%u kernels\n", count);
  SHOW(cuLibraryGetKernel(&first, library, "third"));
  SHOW(cuLibraryGetKernel(&first, library, "first"));
  SHOW(cuLibraryGetKernel(&second, library, "second"));
  std::printf("enumerated: %s\n", yesNo((both[0] == first && both[1] == second) || (both[0] == second && both[1] == first)));
  const char* name = nullptr;
  SHOW(cuKernelGetName(&name, first));
  std::printf("%s\n", name);
  for (std::size_t i = 0; i < 4; ++i) {
    std::size_t offset = 99, size = 99;
    const CUresult result = cuKernelGetParamInfo(first, i, &offset, &size);
    std::printf("parameter %zu: %s", i, resultName(result));
    if (result == CUDA_SUCCESS) std::printf(", offset %zu, size %zu", offset, size);
    std::printf("\n");
  }
  int value = -1;
  SHOW(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, second, device));
  std::printf("at most %d threads\n", value);
  SHOW(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, second, device));
  std::printf("shared %d\n", value);
  CUdeviceptr table = 0, out = 0;
  std::size_t size = 0;
  SHOW(cuLibraryGetGlobal(&table, &size, library, "table"));
  std::printf("table %zu\n", size);
  SHOW(cuLibraryGetGlobal(&table, &size, library, "chair"));
  SHOW(cuMemAlloc(&out, 4));
  unsigned char a = 9;
  struct {
    int values[3];
  } c = {{1, 2, 3000}};
  void* parameters[] = {&a, &out, &c};
  SHOW(cuLaunchKernel(reinterpret_cast<CUfunction>(first), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  int result = 0;
  SHOW(cuMemcpyDtoH(&result, out, 4));
  std::printf("%d\n", result);
  CUfunction function = nullptr;
  SHOW(cuKernelGetFunction(&function, first));
  a = 10;
  SHOW(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  SHOW(cuMemcpyDtoH(&result, out, 4));
  std::printf("%d\n", result);
  CUmodule module = nullptr;
  SHOW(cuLibraryGetModule(&module, library));
  SHOW(cuModuleGetFunction(&function, module, "second"));
  SHOW(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr));
  SHOW(cuLaunchKernel(function, 1, 1, 1, 65, 1, 1, 0, nullptr, nullptr, nullptr));
  SHOW(cuCtxSynchronize());
  SHOW(cuLibraryUnload(library));
  SHOW(cuMemFree(out));
}
