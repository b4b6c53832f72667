// cuModuleUnload waits for all work of the context, whatever ran before it and whoever submitted
// it. Other threads can launch meanwhile.
// conformance: flags=-lcuda judges=itself
#include <atomic>
#include <thread>

#include "expect.h"
#include "show_driver.h"

// `late` reads a word 20,000 times, then sets it. `await` ends when the word is set.
const char* text = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry late(.param .u64 word)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<3>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [word];
  mov.u32 %r1, 20000;
again:
  ld.volatile.global.u32 %r2, [%rd1];
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra again;
  st.volatile.global.u32 [%rd1], 1;
  ret;
}
.visible .entry await(.param .u64 word)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [word];
again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  ret;
}
)";

static CUmodule load() {
  CUmodule module = nullptr;
  EXPECT(cuModuleLoadData(&module, text) == CUDA_SUCCESS);
  return module;
}

static CUfunction find(CUmodule module, const char* name = "late") {
  CUfunction function = nullptr;
  EXPECT(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
  return function;
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  void* mapped = nullptr;
  EXPECT_OK(cudaHostAlloc(&mapped, sizeof(unsigned), cudaHostAllocMapped));
  auto* word = static_cast<volatile unsigned*>(mapped);
  const CUmodule running = load();
  const CUfunction late = find(running);
  const auto launch = [&](CUstream stream) {
    *word = 0;
    void* parameters[] = {&mapped};
    EXPECT(cuLaunchKernel(late, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr) == CUDA_SUCCESS);
  };
  const auto unloadWaits = [&](CUmodule module) {
    EXPECT(cuModuleUnload(module) == CUDA_SUCCESS);
    EXPECT(*word == 1);
  };

  // A first module, and a second one while nothing runs.
  CUmodule unused = load();
  launch(nullptr);
  unloadWaits(unused);
  EXPECT(cuModuleUnload(load()) == CUDA_SUCCESS);

  // Work between two calls about the module.
  unused = load();
  launch(nullptr);
  find(unused);
  unloadWaits(unused);

  // Behind a synchronize, with streams.
  CUstream stream = nullptr;
  EXPECT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
  unused = load();
  launch(stream);
  unloadWaits(unused);

  // Another thread's work.
  unused = load();
  EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
  CUcontext context = nullptr;
  EXPECT(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  std::thread([&] {
    EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    launch(stream);
  }).join();
  unloadWaits(unused);

  // Another thread launches while one waits.
  unused = load();
  const CUfunction await = find(running, "await");
  CUstream other = nullptr;
  EXPECT(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  *word = 0;
  void* parameters[] = {&mapped};
  EXPECT(cuLaunchKernel(await, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr) == CUDA_SUCCESS);
  void* second = nullptr;
  EXPECT_OK(cudaHostAlloc(&second, sizeof(unsigned), cudaHostAllocMapped));
  *static_cast<volatile unsigned*>(second) = 1;
  std::atomic<bool> begins{false}, unloaded{false};
  std::thread waiting([&] {
    EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    begins = true;
    unloadWaits(unused);
    unloaded = true;
  });
  while (!begins) continue;
  for (int i = 0; i < 300; ++i) {
    void* ends[] = {&second};
    EXPECT(cuLaunchKernel(await, 1, 1, 1, 1, 1, 1, 0, other, ends, nullptr) == CUDA_SUCCESS);
    EXPECT(cuStreamSynchronize(other) == CUDA_SUCCESS);
  }
  EXPECT(!unloaded);
  *word = 1;
  waiting.join();

  // Many modules while nothing runs.
  for (int i = 0; i < 200; ++i) {
    const CUmodule module = load();
    find(module);
    EXPECT(cuModuleUnload(module) == CUDA_SUCCESS);
  }
  launch(nullptr);
  unloadWaits(running);
  return verdict();
}
