// Modules from PTX text: functions, globals, both ways to give parameters, what is not there, and text that is no PTX.
// conformance: flags=-lcuda
#include "show_driver.h"

static const char kGood[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 counter = 40;
.visible .const .align 4 .u32 factor = 3;
.visible .entry scaled(.param .u64 out, .param .u32 value)
{
  .reg .u32 %r<4>;
  .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  ld.const.u32 %r2, [factor];
  mul.lo.u32 %r3, %r1, %r2;
  st.global.u32 [%rd1], %r3;
  ld.global.u32 %r1, [counter];
  add.u32 %r1, %r1, 1;
  st.global.u32 [counter], %r1;
  ret;
}
)";

static const char kBad[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry broken()
{
  .reg .u32 %r<2>;
  frobnicate.u32 %r1, 7;
  ret;
}
)";

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  SHOW(cuInit(0));
  SHOW(cuDeviceGet(&device, 0));
  SHOW(cuDevicePrimaryCtxRetain(&context, device));
  SHOW(cuCtxSetCurrent(context));
  CUmodule module = nullptr, other = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr out = 0, counter = 0;
  std::size_t size = 0;
  SHOW(cuModuleLoadData(&module, kGood));
  SHOW(cuModuleGetFunction(&function, module, "unknown"));
  SHOW(cuModuleGetFunction(&function, module, "scaled"));
  SHOW(cuModuleGetGlobal(&counter, &size, module, "nothing"));
  SHOW(cuModuleGetGlobal(&counter, &size, module, "counter"));
  std::printf("size %zu\n", size);
  SHOW(cuMemAlloc(&out, 4));
  unsigned value = 5, result = 0;
  void* parameters[] = {&out, &value};
  SHOW(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  SHOW(cuMemcpyDtoH(&result, out, 4));
  std::printf("%u\n", result);
  struct {
    CUdeviceptr out;
    unsigned value;
  } packed = {out, 7};
  std::size_t packedSize = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packedSize, CU_LAUNCH_PARAM_END};
  SHOW(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  SHOW(cuMemcpyDtoH(&result, out, 4));
  std::printf("%u\n", result);
  SHOW(cuMemcpyDtoH(&result, counter, 4));
  std::printf("counter %u\n", result);
  SHOW(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  SHOW(cuLaunchKernel(function, 1, 1, 1, 2000, 1, 1, 0, nullptr, parameters, nullptr));
  SHOW(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra));
  SHOW(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  static char log[4096];
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  SHOW(cuModuleLoadDataEx(&other, kBad, 2, options, values));
  std::printf("the log names the instruction: %s\n", yesNo(std::strstr(log, "frobnicate") != nullptr));
  SHOW(cuModuleLoadData(&other, kBad));
  SHOW(cuModuleLoadData(&other, "this is no image"));
  SHOW(cuModuleLoadData(&other, kGood));
  SHOW(cuModuleGetGlobal(&counter, &size, other, "counter"));
  SHOW(cuMemcpyDtoH(&result, counter, 4));
  std::printf("counter of another module %u\n", result);
  SHOW(cuModuleUnload(other));
  SHOW(cuModuleUnload(module));
  SHOW(cuMemFree(out));
}
