// A library of which no kernel was launched is unloaded while a kernel of another one runs.
// conformance: flags=-lcuda judges=itself
#include "expect.h"
#include "show_driver.h"

const char* text = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry await(.param .u64 flag)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [flag];
again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  ret;
}
)";

static CUlibrary load() {
  CUlibrary library = nullptr;
  EXPECT(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
         CUDA_SUCCESS);
  return library;
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  const CUlibrary running = load(), unused = load();
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  EXPECT(cuLibraryGetKernel(&kernel, running, "await") == CUDA_SUCCESS);
  EXPECT(cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS);

  void* mapped = nullptr;
  EXPECT_OK(cudaHostAlloc(&mapped, sizeof(unsigned), cudaHostAllocMapped));
  auto* flag = static_cast<volatile unsigned*>(mapped);
  *flag = 0;
  void* parameters[] = {&flag};
  EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) ==
         CUDA_SUCCESS);
  EXPECT(cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
  EXPECT(cuLibraryUnload(unused) == CUDA_SUCCESS);
  EXPECT(cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
  *flag = 1;
  EXPECT(cuLibraryUnload(running) == CUDA_SUCCESS);
  EXPECT(cuStreamQuery(nullptr) == CUDA_SUCCESS);
  return verdict();
}
