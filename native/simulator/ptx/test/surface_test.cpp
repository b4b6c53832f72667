// suld, sust, sured: coordinates, widths, formats, and what happens beyond the edges.
#include <doctest/doctest.h>

#include "native/simulator/ptx/test/images.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

using simulator::ImageShape;

struct Outcome {
  CUresult result;
  std::array<std::uint32_t, 16> words;
};

/// What a kernel of one thread leaves in an image of 4 x 2 x 2 floats.
Outcome run(const std::string& body, std::uint32_t threads = 1) {
  test::Module module(
      test::kernel("mov.u64 %rd4, 77;\nmov.u32 %r2, 0;\nmov.u32 %r3, 1;\n"
                   "mov.u32 %r4, 4;\nmov.u32 %r5, 1000;\n" +
                   body));
  test::Volume volume(module);
  module.images.surfaces[test::kHandle] = volume.image;
  test::Buffer<std::uint32_t> out(module.memory, 64);
  Outcome outcome{module.run("k", {.block = {threads, 1, 1}}, out.address(), out.address()), {}};
  std::memcpy(outcome.words.data(), volume.texels.data(), sizeof outcome.words);
  return outcome;
}

TEST_CASE("stores go to the element that the coordinates name") {
  CHECK(run("sust.b.1d.b32.trap [%rd4, {%r4}], %r5;").words[1] == 1000);
  CHECK(run("sust.b.2d.b32.trap [%rd4, {%r4, %r3}], %r5;").words[5] == 1000);
  CHECK(run("sust.b.3d.b32.trap [%rd4, {%r4, %r3, %r3, %r3}], %r5;").words[13] == 1000);
  CHECK(run("sust.b.a1d.b32.trap [%rd4, {%r3, %r4}], %r5;").words[9] == 1000);
  CHECK(run("sust.b.a2d.b32.trap [%rd4, {%r3, %r4, %r3, %r3}], %r5;").words[13] == 1000);
  const Outcome pair = run("sust.b.2d.v2.b32.trap [%rd4, {%r2, %r3}], {%r5, %r4};");
  CHECK(pair.words[4] == 1000);
  CHECK(pair.words[5] == 4);
  CHECK((run("cvt.u16.u32 %h1, %r5; sust.b.1d.b8.trap [%rd4, {%r3}], %h1;").words[0] & 0xff00) ==
        (1000 & 0xff) << 8);
}

TEST_CASE("loads give what is there") {
  const Outcome copied =
      run("suld.b.2d.v2.b64.trap {%rd5, %rd6}, [%rd4, {%r2, %r3}];\n"
          "sust.b.2d.v2.b64.trap [%rd4, {%r2, %r2}], {%rd5, %rd6};");
  CHECK(copied.result == CUDA_SUCCESS);
  CHECK(std::bit_cast<float>(copied.words[0]) == 4);
  CHECK(std::bit_cast<float>(copied.words[3]) == 7);
  const Outcome byte =
      run("suld.b.1d.b8.trap %h1, [%rd4, {%r4}];\ncvt.u32.u16 %r6, %h1;\n"
          "sust.b.1d.b32.trap [%rd4, {%r2}], %r6;");
  CHECK(byte.words[0] == 0);
}

TEST_CASE("beyond the edge there is a fault, the nearest element, or nothing") {
  CHECK(run("sust.b.1d.b32.trap [%rd4, {%r5}], %r5;").result == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(run("mov.u32 %r6, -4; suld.b.1d.b32.trap %r7, [%rd4, {%r6}];").result ==
        CUDA_ERROR_LAUNCH_FAILED);
  CHECK(run("sust.b.1d.b32.clamp [%rd4, {%r5}], %r5;").words[3] == 1000);
  CHECK(run("sust.b.2d.b32.zero [%rd4, {%r2, %r5}], %r5;").result == CUDA_SUCCESS);
  const Outcome zero =
      run("suld.b.2d.b32.zero %r6, [%rd4, {%r2, %r5}];\nsust.b.1d.b32.trap [%rd4, {%r4}], %r6;");
  CHECK(zero.words[1] == 0);
  CHECK(run("sust.b.1d.b32.trap [%rd4, {%r3}], %r5;").result == CUDA_ERROR_MISALIGNED_ADDRESS);
  CHECK(run("mov.u64 %rd4, 1; sust.b.1d.b32.trap [%rd4, {%r2}], %r5;").result ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("a formatted store converts") {
  test::Module module(test::kernel(R"(
  mov.u64 %rd4, 77;
  mov.f32 %f1, 0f3F000000;
  mov.u32 %r2, 1;
  sust.p.1d.b32.trap [%rd4, {%r2}], %f1;)"));
  test::Buffer<std::uint16_t> texels(module.memory, 2);
  module.images.surfaces[test::kHandle] =
      test::imageOf(texels.address(), ImageShape::d1, CU_AD_FORMAT_HALF, 2, 1, 1);
  test::Buffer<std::uint32_t> out(module.memory, 1);
  CHECK(module.run("k", {.block = {1, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(texels[1] == 0x3800);
  module.images.surfaces[test::kHandle] =
      test::imageOf(texels.address(), ImageShape::d1, CU_AD_FORMAT_UNORM_INT16X1, 2, 1, 1);
  CHECK(module.run("k", {.block = {1, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(texels[1] == 32768);
}

TEST_CASE("reductions of all lanes arrive") {
  const std::string clear = "sust.b.1d.b32.trap [%rd4, {%r2}], %r2;\nbar.warp.sync -1;\n";
  CHECK(run(clear + "sured.b.add.1d.u32.trap [%rd4, {%r2}], %r1;", 32).words[0] == 496);
  CHECK(run(clear + "sured.b.max.1d.s32.trap [%rd4, {%r2}], %r1;", 32).words[0] == 31);
  CHECK(run(clear + "sured.b.or.1d.b32.trap [%rd4, {%r2}], %r1;", 32).words[0] == 31);
  CHECK(run(clear + "neg.s32 %r6, %r1; sured.b.min.1d.s32.trap [%rd4, {%r2}], %r6;", 32).words[0] ==
        static_cast<std::uint32_t>(-31));
  CHECK(run(clear + "neg.s32 %r6, %r1; sured.b.min.1d.u32.trap [%rd4, {%r2}], %r6;", 32).words[0] ==
        0);
}

}  // namespace
