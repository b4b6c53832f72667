// cuLink*: functions and variables of one module that another uses, from memory and from a file; options, logs and the linked image.
// conformance: flags=-lcuda judges=itself
#include <unistd.h>

#include <cstring>
#include <string>

#include "stream_memory.h"

const char* kUser = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 result) twice (.param .b32 x);
.extern .global .align 4 .u32 offset;
.visible .entry apply(.param .u64 at, .param .u32 x) {
  .reg .u64 %rd<3>;
  .reg .u32 %r<5>;
  ld.param.u64 %rd1, [at];
  cvta.to.global.u64 %rd2, %rd1;
  ld.param.u32 %r1, [x];
  { .param .b32 x0; .param .b32 r0;
    st.param.b32 [x0], %r1;
    call.uni (r0), twice, (x0);
    ld.param.b32 %r2, [r0]; }
  ld.global.u32 %r3, [offset];
  add.u32 %r4, %r2, %r3;
  st.global.u32 [%rd2], %r4;
  ret;
}
)";

const char* kGiver = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 offset = 1000;
.visible .func (.param .b32 result) twice (.param .b32 x) {
  .reg .u32 %r<3>;
  ld.param.u32 %r1, [x];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
}
)";

/// Loads the image, and runs its kernel.
void runs(const void* image, const Words& words) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr at = words.device, variable = 0;
  unsigned x = 21, offset = 500;
  size_t bytes = 0;
  void* arguments[] = {&at, &x};
  OK(cuModuleLoadData(&module, image));
  OK(cuModuleGetFunction(&function, module, "apply"));
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  OK(cuCtxSynchronize());
  EXPECT(words.at(0) == 1042);
  OK(cuModuleGetGlobal(&variable, &bytes, module, "offset"));
  EXPECT(bytes == 4);
  OK(cuMemcpyHtoD(variable, &offset, 4));
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  OK(cuCtxSynchronize());
  EXPECT(words.at(0) == 542);
  OK(cuModuleUnload(module));
}

void fromMemory(const Words& words) {
  CUlinkState state = nullptr;
  void* image = nullptr;
  size_t bytes = 0;
  char errors[1024] = "x", information[1024] = "x";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME, CU_JIT_LOG_VERBOSE};
  void* values[] = {errors, (void*)sizeof errors, information, (void*)sizeof information, nullptr, (void*)1};
  OK(cuLinkCreate(6, options, values, &state));
  OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(kUser), std::strlen(kUser) + 1, "user.ptx", 0, nullptr, nullptr));
  OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(kGiver), std::strlen(kGiver) + 1, nullptr, 0, nullptr, nullptr));
  OK(cuLinkComplete(state, &image, &bytes));
  EXPECT(image != nullptr && bytes > 64);
  EXPECT(image != nullptr && std::memcmp(image, "\177ELF", 4) == 0);
  runs(image, words);
  const std::string copy(static_cast<char*>(image), bytes);
  OK(cuLinkDestroy(state));
  runs(copy.data(), words);  // a copy outlives the link
}

void fromFile(const Words& words) {
  char path[] = "/tmp/linker-XXXXXX";
  const int file = mkstemp(path);
  EXPECT(write(file, kGiver, std::strlen(kGiver)) == ssize_t(std::strlen(kGiver)));
  close(file);
  CUlinkState state = nullptr;
  void* image = nullptr;
  size_t bytes = 0;
  OK(cuLinkCreate(0, nullptr, nullptr, &state));
  OK(cuLinkAddFile(state, CU_JIT_INPUT_PTX, path, 0, nullptr, nullptr));
  OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(kUser), std::strlen(kUser) + 1, "user.ptx", 0, nullptr, nullptr));
  OK(cuLinkComplete(state, &image, &bytes));
  runs(image, words);
  OK(cuLinkDestroy(state));
  unlink(path);
}

int main() {
  useContext();
  const Words words;
  fromMemory(words);
  fromFile(words);
  return verdict();
}
