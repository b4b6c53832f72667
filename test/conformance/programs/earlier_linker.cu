// cuLinkCreate, cuLinkAddData and cuLinkAddFile as CUDA 5.5 exported them: two texts become one module.
// conformance: flags=-lcuda judges=itself
#include <unistd.h>

#include <cstring>

#include "by_name.h"

static const char kUser[] = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 result) seven ();
.visible .entry apply(.param .u64 at) {
  .reg .u64 %rd<2>;
  .reg .u32 %r<2>;
  ld.param.u64 %rd1, [at];
  { .param .b32 r0;
    call.uni (r0), seven, ();
    ld.param.b32 %r1, [r0]; }
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

static const char kGiver[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b32 result) seven () {
  .reg .u32 %r<2>;
  mov.u32 %r1, 7;
  st.param.b32 [result], %r1;
  ret;
}
)";

constexpr CUjit_option* noOptions = nullptr;
constexpr void** noValues = nullptr;

static CUlinkState begin() {
  CUlinkState state = nullptr;
  EXPECT_OK(byName("cuLinkCreate", 0u, noOptions, noValues, &state));
  return state;
}

static void addData(CUlinkState state, const char* text) {
  EXPECT_OK(byName("cuLinkAddData", state, CU_JIT_INPUT_PTX, const_cast<char*>(text), std::strlen(text) + 1, "text", 0u, noOptions, noValues));
}

static void addFile(CUlinkState state, const char* text) {
  char path[] = "/tmp/linker-XXXXXX";
  const int file = mkstemp(path);
  EXPECT(write(file, text, std::strlen(text)) == ssize_t(std::strlen(text)));
  close(file);
  EXPECT_OK(byName("cuLinkAddFile", state, CU_JIT_INPUT_PTX, static_cast<const char*>(path), 0u, noOptions, noValues));
  unlink(path);
}

/// Completes the link, and runs the kernel.
static void finish(CUlinkState state) {
  void* image = nullptr;
  std::size_t bytes = 0;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr at = 0;
  void* arguments[] = {&at};
  EXPECT_OK(cuLinkComplete(state, &image, &bytes));
  EXPECT_OK(cuModuleLoadData(&module, image));
  EXPECT_OK(cuLinkDestroy(state));
  EXPECT_OK(cuMemAlloc(&at, 4));
  EXPECT_OK(cuMemsetD32(at, 0, 1));
  EXPECT_OK(cuModuleGetFunction(&function, module, "apply"));
  EXPECT_OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  EXPECT(valueAt(at) == 7);
  EXPECT_OK(cuModuleUnload(module));
  EXPECT_OK(cuMemFree(at));
}

int main() {
  startDriver();
  CUlinkState state = begin();
  addData(state, kUser);
  addData(state, kGiver);
  finish(state);
  state = begin();
  addFile(state, kGiver);
  addData(state, kUser);
  finish(state);
  return verdict();
}
