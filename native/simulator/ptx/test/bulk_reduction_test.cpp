// cp.reduce.async.bulk.
#include <doctest/doctest.h>

#include <array>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

/// One bulk reduction of 16 bytes.
template <class T>
void reduces(const std::string& operation, std::array<T, 16 / sizeof(T)> before,
             std::array<T, 16 / sizeof(T)> operands, std::array<T, 16 / sizeof(T)> after) {
  INFO(operation);
  test::Module module(test::kernel(R"(
  .shared .align 16 .b8 s[32];
  ld.global.v2.u64 {%rd4, %rd5}, [%rd2];
  st.shared.v2.u64 [s+16], {%rd4, %rd5};
  fence.proxy.async.shared::cta;
  mov.u32 %r2, s;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.)" +
                                   operation + R"( [%rd1], [%r2+16], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
)"));
  CHECK(module.error.sentence == "");
  test::Buffer<T> out(module.memory, before.size()), in(module.memory, before.size());
  for (std::size_t i = 0; i < before.size(); ++i) out[i] = before[i], in[i] = operands[i];
  CHECK(module.run("k", {.block = {1, 1, 1}}, out.address(), in.address()) == CUDA_SUCCESS);
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(out[i] == after[i]);
}

TEST_CASE("a bulk reduction computes each element of global memory") {
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  constexpr u64 kTop = 1ull << 63;
  reduces<u32>("add.u32", {1, 2, ~0u, 4}, {10, 20, 1, 40}, {11, 22, 0, 44});
  reduces<u32>("add.s32", {1, 2, 3, 4}, {~0u, 0, 1, 2}, {0, 2, 4, 6});
  reduces<u64>("add.u64", {~0ull, 5}, {2, 1ull << 40}, {1, (1ull << 40) + 5});
  reduces<float>("add.f32", {1, 2, 1e-40f, -1}, {0.5f, 3, 0, 1}, {1.5f, 5, 0, 0});
  reduces<double>("add.f64", {1, 0.25}, {1e-3, -4}, {1.001, -3.75});
  reduces<u16>("add.noftz.f16", {0x3c00, 0x0001, 0, 0, 0, 0, 0, 0x4000},
               {0x3c00, 0x0001, 0x8000, 0, 0, 0, 0, 0xc000}, {0x4000, 0x0002, 0, 0, 0, 0, 0, 0});
  reduces<u16>("add.noftz.bf16", {0x3f80, 0, 0, 0, 0, 0, 0, 0x4000},
               {0x3f80, 0, 0, 0, 0, 0, 0, 0xc000}, {0x4000, 0, 0, 0, 0, 0, 0, 0});
  reduces<u16>("min.f16", {0x3c00, 0x4000, 0xc000, 0, 0, 0, 0, 0x7e00},
               {0x4000, 0x3c00, 0x3c00, 0, 0, 0, 0, 0x3c00},
               {0x3c00, 0x3c00, 0xc000, 0, 0, 0, 0, 0x3c00});
  reduces<u16>("max.bf16", {0x3f80, 0x4000, 0, 0, 0, 0, 0, 0xc000},
               {0x4000, 0x3f80, 0, 0, 0, 0, 0, 0x3f80}, {0x4000, 0x4000, 0, 0, 0, 0, 0, 0x3f80});
  reduces<u32>("inc.u32", {1, 5, 9, 0}, {5, 5, 5, 0}, {2, 0, 0, 0});
  reduces<u32>("dec.u32", {1, 0, 9, 5}, {5, 5, 5, 5}, {0, 5, 5, 4});
  reduces<u32>("min.u32", {1, ~0u, 3, 4}, {2, 1, 3, 0}, {1, 1, 3, 0});
  reduces<u32>("max.s32", {1, ~0u, 3, 4}, {2, 1, 3, 0}, {2, 1, 3, 4});
  reduces<u64>("max.u64", {kTop, 1}, {1, kTop}, {kTop, kTop});
  reduces<u64>("min.s64", {kTop, 1}, {1, kTop}, {kTop, kTop});
  reduces<u32>("and.b32", {7, 7, 7, 0}, {1, 2, 12, 9}, {1, 2, 4, 0});
  reduces<u64>("or.b64", {kTop, 1}, {1, 2}, {kTop | 1, 3});
  reduces<u64>("xor.b64", {kTop, 1}, {kTop, 2}, {0, 3});
}

TEST_CASE("bulk reductions of many blocks lose no addend") {
  test::Module module(test::kernel(R"(
  .shared .align 16 .b8 s[128];
  mov.u32 %r2, s;
  shl.b32 %r3, %r1, 2;
  add.u32 %r3, %r3, %r2;
  st.shared.u32 [%r3], 1;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 ret;
  createpolicy.fractional.L2::evict_first.b64 %rd4, 1.0;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.u32
    [%rd1], [%r2], 128, %rd4;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
)"));
  CHECK(module.error.sentence == "");
  test::Buffer<std::uint32_t> out(module.memory, 32);
  CHECK(module.run("k", {.grid = {500, 1, 1}, .block = {32, 1, 1}}, out.address(), out.address()) ==
        CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == 500);
}

TEST_CASE("a bulk reduction signals the mbarrier of another block of the cluster") {
  test::Module module(test::kernel(test::kBulkSlots + R"(
  mov.u32 %r4, %cluster_ctarank;
  shl.b32 %r5, %r1, 2;
  add.u32 %r5, %r5, %r3;
  add.u32 %r6, %r4, 7;
  st.shared.u32 [%r5], %r6;
  st.shared.u32 [%r5+128], 100;
  @!%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  xor.b32 %r7, %r4, 1;
  mapa.shared::cluster.u32 %r8, %r3, %r7;
  mapa.shared::cluster.u32 %r9, %r2, %r7;
  @%p1 bra $await;
  cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32
    [%r8+128], [%r3], 128, [%r9];
$await:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
  @!%p2 bra $await;
  ld.shared.u32 %r6, [%r5+128];
  mad.lo.u32 %r4, %r4, 32, %r1;
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd4, %rd4, %rd1;
  st.global.u32 [%rd4], %r6;
  barrier.cluster.arrive;
  barrier.cluster.wait;
)"));
  CHECK(module.error.sentence == "");
  test::Buffer<std::uint32_t> out(module.memory, 64);
  CHECK(module.run("k", {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}},
                   out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 64; ++t) CHECK(out[t] == (t < 32 ? 108 : 107));
}

/// The forms are those that ptxas 13.0 takes.
TEST_CASE("bulk reductions have the types of their space") {
  const auto sentence = [](const std::string& form, const std::string& operands) {
    return test::Module(test::kernel("cp.reduce.async.bulk." + form + " " + operands + ";"))
        .error.sentence;
  };
  for (const char* refused :
       {"add.f16", "add.s64", "add.noftz.f32", "add.b32", "min.f32", "min.noftz.f16", "max.b32",
        "and.u32", "inc.s32", "dec.u64", "exch.b32", "cas.b32", "add.noftz.f16x2", "min.u16"})
    CHECK(sentence("global.shared::cta.bulk_group." + std::string(refused), "[%rd1], [%r2], 16")
              .ends_with("is not implemented by the simulated GPU"));
  const std::string cluster = "shared::cluster.shared::cta.mbarrier::complete_tx::bytes.";
  for (const char* refused : {"add.f32", "add.noftz.f16", "min.u64", "max.s64", "or.b64"})
    CHECK(sentence(cluster + refused, "[%r2], [%r3], 16, [%r4]")
              .ends_with("is not implemented by the simulated GPU"));
  for (const char* taken : {"add.u64", "add.s32", "min.s32", "max.u32", "xor.b32", "inc.u32"})
    CHECK(sentence(cluster + taken, "[%r2], [%r3], 16, [%r4]") == "");
}

TEST_CASE("a bulk reduction outside of memory, or beside a multiple of 16, is a fault") {
  const auto resultOf = [](const std::string& operands) {
    test::Module module(
        test::kernel(test::kBulkSlots +
                     "@%p1 ret;\ncp.reduce.async.bulk.global.shared::cta.bulk_group."
                     "add.u32 " +
                     operands + ";"));
    test::Buffer<std::uint32_t> out(module.memory, 128);
    return module.run("k", {}, out.address(), out.address());
  };
  CHECK(resultOf("[%rd1], [s], 512") == CUDA_SUCCESS);
  CHECK(resultOf("[%rd1+16], [s], 512") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("[%rd1], [s+1024], 512") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("[%rd1+8], [s], 16") == CUDA_ERROR_MISALIGNED_ADDRESS);
  CHECK(resultOf("[%rd1], [s], 24") == CUDA_ERROR_MISALIGNED_ADDRESS);
}

}  // namespace
