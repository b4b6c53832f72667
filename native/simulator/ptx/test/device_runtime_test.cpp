// Kernels that launch kernels.
#include <doctest/doctest.h>

#include <atomic>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

const std::string kFunctions = R"(
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f,
  .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2GetLastError();
.visible .entry child(.param .u64 to, .param .u32 add)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [add];
  atom.global.add.u32 %r2, [%rd1], %r1;
  ret;
}
)";

/// Launches child<<<2, %r5>>>(out, 3) in stream %rd8, %r7 times. Its error is added to out[1].
const std::string kLaunch = R"(
$again:
  .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s;
  .param .b64 p; .param .b64 stream; .param .b64 buffer; .param .b32 r;
  mov.u64 %rd4, child;
  st.param.b64 [f], %rd4;
  st.param.b32 [g], 2; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;
  st.param.b32 [b], %r5; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;
  st.param.b32 [s], 0;
  call (buffer), __cudaCDP2GetParameterBufferV2, (f, g, b, s);
  ld.param.b64 %rd5, [buffer];
  setp.eq.u64 %p1, %rd5, 0;
  @%p1 bra $refused;
  st.u64 [%rd5], %rd1;
  st.u32 [%rd5+8], 3;
  st.param.b64 [p], %rd5;
  st.param.b64 [stream], %rd8;
  call (r), __cudaCDP2LaunchDeviceV2, (p, stream);
$refused:
  call (r), __cudaCDP2GetLastError, ();
  ld.param.b32 %r6, [r];
  red.global.add.u32 [%rd1+4], %r6;
  sub.u32 %r7, %r7, 1;
  setp.ne.u32 %p1, %r7, 0;
  @%p1 bra $again;
)";

class Runtime final : public simulator::DeviceRuntime {
 public:
  explicit Runtime(test::Memory& memory) : memory_(memory) {}
  std::uint64_t allocate(std::uint64_t bytes) override {
    ++buffers;
    return memory_.allocate(bytes);
  }
  void release(std::uint64_t address) override {
    --buffers;
    memory_.release(address);
  }
  CUresult checkLaunch(const simulator::Launch& launch) override {
    return launch.block[0] > 1024 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
  bool setCondition(std::uint64_t, std::uint32_t) override { return false; }
  std::optional<std::size_t> limit(int) override { return pending; }
  std::optional<int> deviceAttribute(int) override { return std::nullopt; }
  int functionAttribute(const simulator::Program&, std::size_t, int) override { return 0; }
  int blocksPerMultiprocessor(const simulator::Program&, std::size_t, unsigned,
                              std::size_t) override {
    return 0;
  }
  int cacheConfig() override { return 0; }
  int device() override { return 0; }
  int deviceCount() override { return 1; }
  int version() override { return 13000; }

  std::atomic<int> buffers{0};
  std::size_t pending = 2048;

 private:
  test::Memory& memory_;
};

/// Runs `blocks` blocks of 32 threads, each of which launches two blocks of `threads` threads,
/// `times` times.
struct Result {
  CUresult status;
  std::uint32_t sum, errors;
  int buffers;
};
Result launches(std::uint32_t blocks, unsigned threads, unsigned stream, std::size_t pending,
                unsigned times = 1) {
  const std::string values = "mov.u32 %r5, " + std::to_string(threads) + "; mov.u64 %rd8, " +
                             std::to_string(stream) + "; mov.u32 %r7, " + std::to_string(times) +
                             ";";
  test::Module module(test::kernel(values + kLaunch, kFunctions));
  Runtime runtime(module.memory);
  runtime.pending = pending;
  module.runtime = &runtime;
  test::Buffer<std::uint32_t> out(module.memory, 2);
  const CUresult status =
      module.run("k", {.grid = {blocks, 1, 1}, .block = {32, 1, 1}}, out.address(), out.address());
  return {status, out[0], out[1], runtime.buffers};
}

constexpr unsigned kTail = 3, kFireAndForget = 4;

TEST_CASE("children end before their parent is complete") {
  for (const unsigned stream : {0u, 2u, kTail, kFireAndForget}) {
    CAPTURE(stream);
    const Result result = launches(4, 16, stream, 2048);
    CHECK(result.status == CUDA_SUCCESS);
    CHECK(result.sum == 4 * 32 * 2 * 16 * 3);
    CHECK(result.errors == 0);
    CHECK(result.buffers == 0);
  }
}

TEST_CASE("children begin before their parent ends if too many are pending") {
  const Result result = launches(1, 16, kFireAndForget, 40, 10);
  CHECK(result.sum == 10 * 32 * 2 * 16 * 3);
  CHECK(result.errors == 0);
}

TEST_CASE("tails beyond the limit of pending launches are refused") {
  const Result result = launches(2, 1, kTail, 10);
  CHECK(result.status == CUDA_SUCCESS);
  CHECK(result.sum == 10 * 2 * 3);
  CHECK(result.errors == (64 - 10) * 69);
  CHECK(result.buffers == 0);
}

TEST_CASE("a refused launch is an error of its thread") {
  const Result result = launches(1, 2048, 0, 2048);
  CHECK(result.status == CUDA_SUCCESS);
  CHECK(result.sum == 0);
  CHECK(result.errors == 32 * 9);
}

TEST_CASE("a launch in no stream of the grid gives its buffer back") {
  const Result result = launches(1, 1, 4711, 2048);
  CHECK(result.sum == 0);
  CHECK(result.errors == 32 * CUDA_ERROR_INVALID_HANDLE);
  CHECK(result.buffers == 0);
}

TEST_CASE("a child's fault ends the launch") {
  test::Module module(test::kernel("mov.u32 %r5, 1; mov.u64 %rd8, 0; mov.u64 %rd1, 64;" +
                                       kLaunch.substr(0, kLaunch.rfind("$refused")) + "$refused:",
                                   kFunctions));
  Runtime runtime(module.memory);
  module.runtime = &runtime;
  CHECK(module.run("k", {}, std::uint64_t{0}, std::uint64_t{0}) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

const std::string kCopies = R"(
.extern .func (.param .b32 r) __cudaCDP2MemsetAsync(.param .b64 to, .param .b32 value,
  .param .b64 bytes, .param .b64 stream);
.extern .func (.param .b32 r) __cudaCDP2MemcpyAsync(.param .b64 to, .param .b64 from,
  .param .b64 bytes, .param .b32 kind, .param .b64 stream);
.extern .func (.param .b32 r) __cudaCDP2Memcpy2DAsync(.param .b64 to, .param .b64 toPitch,
  .param .b64 from, .param .b64 fromPitch, .param .b64 width, .param .b64 height,
  .param .b32 kind, .param .b64 stream);
)";

TEST_CASE("fills and copies of a kernel are executed in order") {
  test::Module module(test::kernel(R"(
  .param .b64 a; .param .b64 b; .param .b64 c; .param .b64 d; .param .b64 e; .param .b64 f;
  .param .b32 v; .param .b32 r;
  mov.u64 %rd4, 0;
  add.u64 %rd5, %rd1, 16;
  add.u64 %rd6, %rd1, 32;
  st.param.b64 [a], %rd1; st.param.b32 [v], 1; st.param.b64 [b], 12; st.param.b64 [c], %rd4;
  call (r), __cudaCDP2MemsetAsync, (a, v, b, c);
  ld.param.b32 %r2, [r];
  st.param.b64 [a], %rd5; st.param.b64 [b], %rd1; st.param.b64 [c], 16; st.param.b32 [v], 3;
  st.param.b64 [d], %rd4;
  call (r), __cudaCDP2MemcpyAsync, (a, b, c, v, d);
  ld.param.b32 %r3, [r];
  st.param.b64 [a], %rd6; st.param.b64 [b], 8; st.param.b64 [c], %rd5; st.param.b64 [d], 12;
  st.param.b64 [e], 4; st.param.b64 [f], 2;
  .param .b64 g;
  st.param.b64 [g], %rd4;
  call (r), __cudaCDP2Memcpy2DAsync, (a, b, c, d, e, f, v, g);
  ld.param.b32 %r4, [r];
  add.u32 %r2, %r2, %r3;
  add.u32 %r2, %r2, %r4;
  st.u32 [%rd1+48], %r2;
)",
                                   kCopies));
  Runtime runtime(module.memory);
  module.runtime = &runtime;
  constexpr std::uint32_t kOnes = 0x01010101;
  test::Buffer<std::uint32_t> out(
      module.memory, std::vector<std::uint32_t>{0, 0, 0, 7, 0, 0, 0, 0, 5, 5, 5, 5, 1});
  CHECK(module.run("k", {}, out.address(), out.address()) == CUDA_SUCCESS);
  const std::vector<std::uint32_t> found(out.data(), out.data() + out.size());
  CHECK(found == std::vector<std::uint32_t>{kOnes, kOnes, kOnes, 7, kOnes, kOnes, kOnes, 7, kOnes,
                                            5, 7, 5, 0});
}

TEST_CASE("a function that the device runtime lacks is an undefined reference") {
  test::Module module(test::kernel(".param .b32 r; call (r), __cudaCDP2Unknown, ();",
                                   ".extern .func (.param .b32 r) __cudaCDP2Unknown();"));
  CHECK(module.program == nullptr);
}

}  // namespace
