// Calls of the driver API by their exported names: a header of CUDA 13 gives a name such as cuCtxCreate to the newest version.
#pragma once

#include <dlfcn.h>

#include "expect.h"
#include "show_driver.h"

inline void expectOk(CUresult result, const char* call, int line) {
  if (result == CUDA_SUCCESS || ++wrongExpectations > 20) return;
  std::printf("line %d: %s: %s\n", line, call, resultName(result));
}

template <class... Arguments>
CUresult byName(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  auto call = reinterpret_cast<CUresult (*)(Arguments...)>(dlsym(library, name));
  return call == nullptr ? CUDA_ERROR_NOT_FOUND : call(arguments...);
}

/// The primary context of the first GPU is current.
inline CUcontext startDriver() {
  CUcontext context = nullptr;
  EXPECT_OK(cuInit(0));
  EXPECT_OK(cuDevicePrimaryCtxRetain(&context, 0));
  EXPECT_OK(cuCtxSetCurrent(context));
  return context;
}

/// Two kernels: `fill` stores a value, `add` adds one.
inline const char kTwoKernels[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 value)
{
  .reg .u32 %r<2>;
  .reg .u64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry add(.param .u64 out, .param .u32 value)
{
  .reg .u32 %r<4>;
  .reg .u64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  ld.global.u32 %r2, [%rd1];
  add.u32 %r3, %r1, %r2;
  st.global.u32 [%rd1], %r3;
  ret;
}
)";

inline unsigned valueAt(CUdeviceptr address) {
  unsigned value = 0;
  EXPECT_OK(cuMemcpyDtoH(&value, address, sizeof value));
  return value;
}
