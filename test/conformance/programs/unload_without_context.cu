// cuModuleUnload needs no current context: it waits for the work in the module's own context.
// conformance: flags=-lcuda judges=itself
#include "expect.h"
#include "show_driver.h"

static const char kText[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry write(.param .u64 out)
{
  .reg .u32 %r<3>;
  .reg .u64 %rd<2>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, 0;
again:
  add.u32 %r1, %r1, 1;
  st.volatile.global.u32 [%rd1], %r1;
  setp.lt.u32 %p1, %r1, 2000;
  @%p1 bra again;
  ret;
}
)";

int main() {
  CUcontext primary = nullptr, created = nullptr, current = nullptr;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
  EXPECT(cuCtxCreate(&created, nullptr, 0, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxPopCurrent(&created) == CUDA_SUCCESS);
  for (const CUcontext context : {primary, created}) {
    EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    volatile unsigned* word = nullptr;
    EXPECT(cuMemAllocHost((void**)&word, 4) == CUDA_SUCCESS);
    word[0] = 0;
    CUmodule module = nullptr;
    EXPECT(cuModuleLoadData(&module, kText) == CUDA_SUCCESS);
    CUfunction function = nullptr;
    EXPECT(cuModuleGetFunction(&function, module, "write") == CUDA_SUCCESS);
    void* parameters[] = {&word};
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) ==
           CUDA_SUCCESS);
    EXPECT(cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
    EXPECT(cuModuleUnload(module) == CUDA_SUCCESS);
    EXPECT(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == nullptr);
    EXPECT(word[0] == 2000);
    EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    EXPECT(cuMemFreeHost((void*)word) == CUDA_SUCCESS);
  }
  EXPECT(cuCtxDestroy(created) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  return verdict();
}
