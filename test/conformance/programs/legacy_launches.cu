// Launches as before CUDA 4: block shape, arguments and their size are set one by one.
// conformance: flags=-lcuda
#include "show_driver.h"

static const char* const kImage = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u32 value, .param .u64 to) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u32 %r1, [value];
  ld.param.u64 %rd1, [to];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r1, %r2, %r3, %r1;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r1;
  ret;
})";

static void look(CUdeviceptr d) {
  unsigned values[2] = {};
  SHOW(cuMemcpyDtoH(values, d, sizeof values));
  std::printf("%u %u\n", values[0], values[1]);
}

int main() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  CUdeviceptr d = 0;
  SHOW(cuInit(0));
  SHOW(cuDevicePrimaryCtxRetain(&context, 0));
  SHOW(cuCtxSetCurrent(context));
  SHOW(cuMemAlloc(&d, 8));
  SHOW(cuMemsetD32(d, 0, 2));
  SHOW(cuModuleLoadData(&module, kImage));
  SHOW(cuModuleGetFunction(&store, module, "store"));
  SHOW(cuFuncSetBlockShape(store, 32, 1, 1));
  SHOW(cuFuncSetSharedSize(store, 0));
  SHOW(cuParamSeti(store, 0, 77));
  SHOW(cuParamSetv(store, 8, &d, sizeof d));
  SHOW(cuParamSetSize(store, 16));
  SHOW(cuLaunch(store));
  SHOW(cuCtxSynchronize());
  look(d);
  SHOW(cuParamSeti(store, 0, 5));
  SHOW(cuLaunchGrid(store, 2, 1));
  look(d);
  SHOW(cuParamSetf(store, 0, 0.f));
  SHOW(cuFuncSetBlockShape(store, 3, 1, 1));
  SHOW(cuLaunchGridAsync(store, 2, 1, nullptr));
  look(d);
}
