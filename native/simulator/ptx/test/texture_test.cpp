// tex, tld4, txq, suq: forms of the instructions, coordinates, results, wrong handles.
#include <doctest/doctest.h>

#include <cmath>

#include "native/simulator/ptx/machine/half.h"
#include "native/simulator/ptx/test/images.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

using simulator::ImageShape;

/// What a fetch gives. The body leaves it in %f1 to %f4, or %r11 to %r14.
std::array<std::uint32_t, 4> fetch(const std::string& body, ImageShape shape,
                                   const simulator::Sampler& sampler = {}, bool whole = false,
                                   const std::string& before = {}) {
  const std::string results = whole ? "{%r11, %r12, %r13, %r14}" : "{%f1, %f2, %f3, %f4}";
  test::Module module(test::kernel("mov.u64 %rd4, 77;\n" + body + "\nst.global.v4." +
                                       (whole ? "b32" : "f32") + " [%rd1], " + results + ";",
                                   before));
  test::Volume volume(module, shape);
  module.images.textures[test::kHandle] = {volume.image, sampler};
  module.images.surfaces[test::kHandle] = volume.image;
  test::Buffer<std::uint32_t> out(module.memory, 4);
  CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  return {out[0], out[1], out[2], out[3]};
}

float first(const std::string& body, ImageShape shape, const simulator::Sampler& sampler = {}) {
  return std::bit_cast<float>(fetch(body, shape, sampler)[0]);
}

CUresult resultOf(const std::string& body) {
  test::Module module(test::kernel(body));
  test::Volume volume(module);
  module.images.textures[test::kHandle] = {volume.image, {}};
  test::Buffer<std::uint32_t> out(module.memory, 4);
  return module.run("k", {.block = {32, 1, 1}}, out.address(), out.address());
}

const std::string kResults = "{%f1, %f2, %f3, %f4}";

TEST_CASE("each geometry reads its texel") {
  const std::string setup = "mov.f32 %f5, 0f3FC00000; mov.f32 %f6, 0f3F800000;\n";  // 1.5 and 1
  CHECK(first(setup + "tex.1d.v4.f32.f32 " + kResults + ", [%rd4, {%f5}];", ImageShape::d1) == 1);
  CHECK(first(setup + "tex.2d.v4.f32.f32 " + kResults + ", [%rd4, {%f5, %f6}];", ImageShape::d3) ==
        5);
  CHECK(first(setup + "tex.3d.v4.f32.f32 " + kResults + ", [%rd4, {%f5, %f6, %f6, %f6}];",
              ImageShape::d3) == 13);
  CHECK(first(setup + "mov.u32 %r2, 1; tex.a2d.v4.f32.f32 " + kResults +
                  ", [%rd4, {%r2, %f5, %f6, %f6}];",
              ImageShape::layered2d) == 13);
  CHECK(first(setup + "mov.u32 %r2, 9; tex.a1d.v4.f32.f32 " + kResults + ", [%rd4, {%r2, %f5}];",
              ImageShape::layered2d) == 9);
  CHECK(first("mov.u32 %r2, 3; tex.1d.v4.f32.s32 " + kResults + ", [%rd4, {%r2}];",
              ImageShape::linear) == 3);
  CHECK(first("mov.u32 %r2, 16; tex.1d.v4.f32.s32 " + kResults + ", [%rd4, {%r2}];",
              ImageShape::linear) == 0);
}

TEST_CASE("missing channels are 0, 0 and 1") {
  const auto words =
      fetch("mov.u32 %r2, 3; tex.1d.v4.f32.s32 " + kResults + ", [%rd4, {%r2}];", ImageShape::d1);
  CHECK(words[1] == 0);
  CHECK(words[2] == 0);
  CHECK(std::bit_cast<float>(words[3]) == 1);
}

TEST_CASE("a linear filter weighs with 8 bits of fraction") {
  simulator::Sampler sampler;
  sampler.filter = CU_TR_FILTER_MODE_LINEAR;
  sampler.address.fill(CU_TR_ADDRESS_MODE_CLAMP);
  const auto at = [&](const char* bits) {
    return first("mov.f32 %f5, 0f" + std::string(bits) + ";\ntex.1d.v4.f32.f32 " + kResults +
                     ", [%rd4, {%f5}];",
                 ImageShape::d1, sampler);
  };
  CHECK(at("40000000") == 1.5f);            // 2
  CHECK(at("3FC08000") == 1 + 1 / 256.0f);  // 1.5 + 1/256
  CHECK(at("3FC02000") == 1);               // 1.5 + 1/1024: no full step
}

/// The texels and the result are those of an H200.
TEST_CASE("wrap and mirror keep the fraction of far coordinates") {
  const auto at = [](const char* bits, CUaddress_mode mode) {
    test::Module module(test::kernel("mov.u64 %rd4, 77; mov.f32 %f5, 0f" + std::string(bits) +
                                     ";\ntex.1d.v4.f32.f32 " + kResults +
                                     ", [%rd4, {%f5}];\nst.global.f32 [%rd1], %f1;"));
    test::Volume volume(module, ImageShape::d1);
    volume.image.levels[0].width = 3;
    simulator::Sampler sampler;
    sampler.normalizedCoordinates = true;
    sampler.address.fill(mode);
    module.images.textures[test::kHandle] = {volume.image, sampler};
    test::Buffer<float> out(module.memory, 1);
    CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
    return out[0];
  };
  for (const CUaddress_mode mode : {CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_MIRROR})
    for (const char* even : {"4EFFFFFF", "4F000001", "60AD78EC", "7F7FFFFF", "FF7FFFFF"})
      CHECK(at(even, mode) == 0);
  CHECK(at("BE800000", CU_TR_ADDRESS_MODE_WRAP) == 2);    // -0.25
  CHECK(at("BE800000", CU_TR_ADDRESS_MODE_MIRROR) == 0);  // -0.25
  CHECK(at("4B000001", CU_TR_ADDRESS_MODE_WRAP) == 0);    // 2^23 + 1
  CHECK(at("4B000001", CU_TR_ADDRESS_MODE_MIRROR) == 2);  // 2^23 + 1
}

TEST_CASE("products of weights are rounded to 8 bits") {
  test::Module module(test::kernel(R"(
  mov.u64 %rd4, 77;
  mov.f32 %f5, 0f3F880000;
  mov.f32 %f6, 0f3F600000;
  mov.f32 %f7, 0f3FA00000;
  tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd4, {%f5, %f6, %f7, %f7}];
  st.global.f32 [%rd1], %f1;)"));
  test::Buffer<float> texels(module.memory, 8);
  const float values[] = {23, 52, 63, 28};
  for (std::size_t i = 0; i < 8; ++i) texels[i] = values[i % 4];
  simulator::Sampler sampler;
  sampler.filter = CU_TR_FILTER_MODE_LINEAR;
  sampler.address.fill(CU_TR_ADDRESS_MODE_CLAMP);
  module.images.textures[test::kHandle] = {
      test::imageOf(texels.address(), ImageShape::d3, CU_AD_FORMAT_FLOAT, 2, 2, 2), sampler};
  test::Buffer<float> out(module.memory, 1);
  CHECK(module.run("k", {.block = {1, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 40.5625f);
}

TEST_CASE("a linear filter over one dimension weighs a row of border") {
  simulator::Sampler sampler;
  sampler.filter = CU_TR_FILTER_MODE_LINEAR;
  sampler.address.fill(CU_TR_ADDRESS_MODE_BORDER);
  const std::string body = "mov.f32 %f5, 0f40200000;\ntex.1d.v4.f32.f32 " + kResults +  // 2.5
                           ", [%rd4, {%f5}];";
  CHECK(first(body, ImageShape::d1, sampler) == 1);
}

TEST_CASE("gathered texels go counter-clockwise") {
  const auto words = fetch(
      "mov.f32 %f5, 0f40000000; mov.f32 %f6, 0f3F800000;\n"  // 2 and 1
      "tld4.r.2d.v4.f32.f32 " +
          kResults + ", [%rd4, {%f5, %f6}];",
      ImageShape::d3);
  const float expected[] = {5, 6, 2, 1};
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::bit_cast<float>(words[i]) == expected[i]);
}

TEST_CASE("results may be halves") {
  const auto words = fetch(
      "mov.u32 %r2, 3; tex.1d.v4.f16.s32 {%h1, %h2, %h3, %h4}, [%rd4, {%r2}];\n"
      "cvt.f32.f16 %f1, %h1; cvt.f32.f16 %f2, %h2; cvt.f32.f16 %f3, %h3; cvt.f32.f16 %f4, %h4;",
      ImageShape::d1);
  CHECK(std::bit_cast<float>(words[0]) == 3);
  CHECK(std::bit_cast<float>(words[3]) == 1);
  const auto pairs = fetch(
      "mov.u32 %r2, 3; tex.1d.v2.f16x2.s32 {%r11, %r12}, [%rd4, {%r2}];\n"
      "mov.u32 %r13, 0; mov.u32 %r14, 0;",
      ImageShape::d1, {}, true);
  CHECK(pairs[0] == simulator::ptx::floatToHalf(3));
  CHECK(pairs[1] == std::uint32_t{simulator::ptx::floatToHalf(1)} << 16);
}

TEST_CASE("numbers of 16 bits round as the host rounds") {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float wide = simulator::ptx::halfToFloat(static_cast<std::uint16_t>(half));
    if (!std::isnan(wide)) CHECK(simulator::ptx::floatToHalf(wide) == half);
  }
  CHECK(simulator::ptx::floatToHalf(1 + 0x1p-11f) == 0x3c00);
  CHECK(simulator::ptx::floatToHalf(1 + 0x3p-11f) == 0x3c02);
  CHECK(simulator::ptx::floatToHalf(65519.9f) == 0x7bff);
  CHECK(simulator::ptx::floatToHalf(65520) == 0x7c00);
}

TEST_CASE("levels are given or follow from gradients") {
  test::Module module(test::kernel(R"(
  mov.u64 %rd4, 77;
  mov.f32 %f5, 0f3F000000;
  mov.f32 %f6, 0f3F800000;
  mov.f32 %f7, 0f3F000000;
  mov.f32 %f8, 0f00000000;
  tex.level.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd4, {%f5}], %f6;
  tex.grad.1d.v4.f32.f32 {%f9, %f2, %f3, %f4}, [%rd4, {%f5}], {%f7}, {%f8};
  tex.base.1d.v4.f32.f32 {%f10, %f2, %f3, %f4}, [%rd4, {%f5}];
  st.global.v2.f32 [%rd1], {%f1, %f9};
  st.global.f32 [%rd1+8], %f10;)"));
  test::Volume volume(module, ImageShape::d1);
  auto& levels = volume.image.levels;
  levels[0].width = 4;
  levels.push_back({volume.texels.address() + 16, 2, 1, 1, 8, 8});
  levels.push_back({volume.texels.address() + 32, 1, 1, 1, 4, 4});
  simulator::Sampler sampler;
  sampler.normalizedCoordinates = true;
  sampler.highestLevel = 10;
  module.images.textures[test::kHandle] = {volume.image, sampler};
  test::Buffer<float> out(module.memory, 4);
  CHECK(module.run("k", {.block = {1, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 5);  // texel 1 of level 1
  CHECK(out[1] == 5);  // half the image a step: 2 texels
  CHECK(out[2] == 2);
}

TEST_CASE("a cube is read by direction") {
  test::Module module(test::kernel(R"(
  mov.u64 %rd4, 77;
  mov.f32 %f5, 0f3F800000;
  mov.f32 %f6, 0fBF800000;
  mov.f32 %f7, 0f00000000;
  mov.u32 %r2, 1;
  tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd4, {%f5, %f7, %f7, %f7}];
  tex.acube.v4.f32.f32 {%f8, %f2, %f3, %f4}, [%rd4, {%r2, %f7, %f6, %f7}];
  st.global.v2.f32 [%rd1], {%f1, %f8};)"));
  test::Buffer<float> texels(module.memory, 12);
  for (std::size_t i = 0; i < 12; ++i) texels[i] = static_cast<float>(i);
  const auto image =
      test::imageOf(texels.address(), ImageShape::layeredCubemap, CU_AD_FORMAT_FLOAT, 1, 1, 12);
  module.images.textures[test::kHandle] = {image, {}};
  test::Buffer<float> out(module.memory, 4);
  CHECK(module.run("k", {.block = {1, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 0);
  CHECK(out[1] == 9);
}

TEST_CASE("textures and surfaces answer queries") {
  const auto words = fetch(R"(
  txq.width.b32 %r11, [%rd4];
  txq.height.b32 %r12, [%rd4];
  txq.depth.b32 %r13, [%rd4];
  suq.width.b32 %r14, [%rd4];)",
                           ImageShape::d3, {}, true);
  CHECK(words == std::array<std::uint32_t, 4>{4, 2, 2, 4});
}

TEST_CASE("a variable holds a handle") {
  test::Module module(
      test::kernel("mov.u32 %r2, 3; tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r2}];\n"
                   "st.global.f32 [%rd1], %f1;",
                   ".global .texref image;\n"));
  REQUIRE(module.program);
  CHECK(module.program->variables()[0].opaque);
  test::Volume volume(module, ImageShape::d1);
  module.images.textures[test::kHandle] = {volume.image, {}};
  std::memcpy(reinterpret_cast<void*>(module.variable("image")), &test::kHandle, 8);
  test::Buffer<float> out(module.memory, 1);
  CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 3);
}

TEST_CASE("a wrong handle is a fault, also if only one lane has it") {
  const std::string fetchIt = "tex.1d.v4.f32.s32 " + kResults + ", [%rd4, {%r1}];";
  CHECK(resultOf("mov.u64 %rd4, 77;\n" + fetchIt) == CUDA_SUCCESS);
  CHECK(resultOf("mov.u64 %rd4, 78;\n" + fetchIt) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("cvt.u64.u32 %rd4, %r1;\nadd.u64 %rd4, %rd4, 76;\nshr.u64 %rd4, %rd4, 1;\n" +
                 fetchIt) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("txq.width.b32 %r2, [%rd1];") == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("freed memory of a texture is a fault") {
  test::Module module(
      test::kernel("mov.u64 %rd4, 77;\ntex.1d.v4.f32.s32 " + kResults + ", [%rd4, {%r1}];"));
  test::Buffer<std::uint32_t> out(module.memory, 4);
  {
    test::Volume volume(module, ImageShape::linear);
    volume.image.inMemory = true;
    module.images.textures[test::kHandle] = {volume.image, {}};
    CHECK(module.run("k", {.block = {16, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  }
  CHECK(module.run("k", {.block = {16, 1, 1}}, out.address(), out.address()) ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("forms that do not exist are refused") {
  for (const char* body :
       {"tex.2d.v4.f64.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];",
        "tex.1d.f32.f32 %f1, [%rd1, {%f5}];",
        "tld4.r.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}];",
        "tex.cube.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r1, %r1, %r1}];",
        "suld.b.cube.b32.trap %r1, [%rd1, {%r1, %r1, %r1, %r1}];",
        "suld.p.1d.b32.trap %r1, [%rd1, {%r1}];", "txq.colour.b32 %r1, [%rd1];"}) {
    CAPTURE(body);
    CHECK(test::Module(test::kernel(body)).program == nullptr);
  }
}

}  // namespace
