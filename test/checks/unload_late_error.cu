// cuModuleUnload unloads a module also if it returns the error of an earlier call. A launch into a
// stream that has ended fails that late; natively it crashes (H200, driver 580).
#include <cuda.h>

#include "conformance/programs/expect.h"

constexpr std::size_t kBytes = std::size_t{64} << 20;
const char* text = R"(.version 7.0
.target sm_52
.address_size 64
.visible .global .align 4 .b8 large[67108864];
.visible .entry writes()
{
  .reg .b64 %rd<2>;
  mov.u64 %rd1, large;
  st.global.u32 [%rd1], 1;
  ret;
}
)";

static std::size_t freeBytes() {
  std::size_t free = 0, total = 0;
  EXPECT(cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  return free;
}

static CUmodule load() {
  CUmodule module = nullptr;
  EXPECT(cuModuleLoadData(&module, text) == CUDA_SUCCESS);
  return module;
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  const CUmodule launched = load();
  CUfunction function = nullptr;
  EXPECT(cuModuleGetFunction(&function, launched, "writes") == CUDA_SUCCESS);
  CUstream stream = nullptr;
  EXPECT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const auto launch = [&] {
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  };
  EXPECT(launch() == CUDA_SUCCESS);
  const CUmodule unloaded = load();
  EXPECT(cuStreamDestroy(stream) == CUDA_SUCCESS);
  const std::size_t before = freeBytes();
  const CUresult atOnce = launch();
  const CUresult late = cuModuleUnload(unloaded);
  EXPECT((atOnce == CUDA_SUCCESS) != (late == CUDA_SUCCESS));
  EXPECT(freeBytes() >= before + kBytes);
  EXPECT(cuModuleUnload(launched) == CUDA_SUCCESS);
  return verdict();
}
