// cuMemUnmap does not wait for work in flight, whose next access to the memory is a fault. The
// results are those of an H200.
#include <atomic>
#include <cstdint>
#include <thread>

#include "native/simulator/test/driver_test.h"

namespace {

constexpr const char* kKernels = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry use(.param .u64 words, .param .u64 at, .param .u32 writes)
{
  .reg .pred %p<3>;
  .reg .u32 %r<4>;
  .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [words];
  ld.param.u64 %rd2, [at];
  ld.param.u32 %r1, [writes];
  ld.volatile.global.u32 %r2, [%rd2];
  st.volatile.global.u32 [%rd1+4], 1;
$wait:
  ld.volatile.global.u32 %r2, [%rd1];
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra $wait;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 st.volatile.global.u32 [%rd2], 99;
  ld.volatile.global.u32 %r3, [%rd2];
  st.volatile.global.u32 [%rd1+8], %r3;
  ret;
}
.visible .entry count(.param .u64 words, .param .u64 at)
{
  .reg .pred %p<2>;
  .reg .u32 %r<3>;
  .reg .u64 %rd<4>;
  ld.param.u64 %rd1, [words];
  ld.param.u64 %rd2, [at];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd2, %rd2, %rd3;
  st.volatile.global.u32 [%rd1+4], 1;
$again:
  ld.global.u32 %r1, [%rd2];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%rd2], %r1;
  ld.volatile.global.u32 %r2, [%rd1];
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra $again;
  ret;
}
)";

constexpr std::size_t kBytes = 16 << 20;
constexpr unsigned kValue = 42;

/// Mapped memory full of kValue, and a kernel that waits for the host.
struct Scene {
  CUstream stream = nullptr;
  CUdeviceptr range = 0, elsewhere = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  unsigned* words = nullptr;  ///< the kernel may end; it runs; what it has read

  Scene() {
    usePrimaryContext();
    void* host = nullptr;
    OK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(DRIVER(cuMemHostAlloc)(&host, 4096, 0));
    words = static_cast<unsigned*>(host);
    words[0] = words[1] = words[2] = 0;
    OK(DRIVER(cuMemAlloc_v2)(&elsewhere, kBytes));
    OK(DRIVER(cuMemAddressReserve)(&range, kBytes, 0, 0, 0));
    map(handle);
    OK(DRIVER(cuMemsetD32_v2)(range, kValue, kBytes / 4));
    OK(DRIVER(cuMemsetD32_v2)(elsewhere, kValue, kBytes / 4));
    OK(DRIVER(cuCtxSynchronize)());
  }
  void map(CUmemGenericAllocationHandle& memory) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = access.location;
    OK(DRIVER(cuMemCreate)(&memory, kBytes, &properties, 0));
    OK(DRIVER(cuMemMap)(range, kBytes, 0, memory, 0));
    OK(DRIVER(cuMemSetAccess)(range, kBytes, &access, 1));
  }
  std::atomic_ref<unsigned> word(int index) const { return std::atomic_ref(words[index]); }
  /// Launches a kernel that reads `at`, waits for the host and uses `at` again; returns when it
  /// waits.
  void begin(CUdeviceptr at, unsigned writes = 0) {
    void* parameters[] = {&words, &at, &writes};
    OK(DRIVER(cuLaunchKernel)(functionOf(kKernels, "use"), 1, 1, 1, 1, 1, 1, 0, stream, parameters,
                              nullptr));
    while (word(1).load() == 0) std::this_thread::yield();
  }
  void unmap() { OK(DRIVER(cuMemUnmap)(range, kBytes)); }
  CUresult end() {
    word(0).store(1);
    return DRIVER(cuStreamSynchronize)(stream);
  }
};

TEST_CASE("a kernel in flight faults when it reads or writes memory that was unmapped") {
  for (const unsigned writes : {0u, 1u}) {
    unit::inChild([&] {
      Scene scene;
      scene.begin(scene.range, writes);
      scene.unmap();
      EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, scene.end());
      CHECK(scene.words[2] == 0);
      CUdeviceptr more = 0;
      EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, DRIVER(cuMemAlloc_v2)(&more, 4));
      OK(DRIVER(cuMemRelease)(scene.handle));
      OK(DRIVER(cuMemAddressFree)(scene.range, kBytes));
    });
  }
}

TEST_CASE("a kernel in flight faults when its access was withdrawn") {
  unit::inChild([] {
    Scene scene;
    scene.begin(scene.range);
    scene.access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(DRIVER(cuMemSetAccess)(scene.range, kBytes, &scene.access, 1));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, scene.end());
  });
}

TEST_CASE("a kernel in flight goes on beside memory that is unmapped") {
  unit::inChild([] {
    Scene scene;
    scene.begin(scene.elsewhere);
    scene.unmap();
    OK(DRIVER(cuMemRelease)(scene.handle));
    OK(DRIVER(cuMemAddressFree)(scene.range, kBytes));
    OK(scene.end());
    CHECK(scene.words[2] == kValue);
  });
}

TEST_CASE("a kernel in flight sees the memory that is mapped at the same addresses") {
  unit::inChild([] {
    Scene scene;
    CUmemGenericAllocationHandle other = 0;
    scene.begin(scene.range);
    scene.unmap();
    scene.map(other);
    OK(scene.end());
    CHECK(scene.words[2] == 0);
  });
}

TEST_CASE("mapped memory outlives its handle, under a kernel in flight") {
  unit::inChild([] {
    Scene scene;
    scene.begin(scene.range);
    OK(DRIVER(cuMemRelease)(scene.handle));
    OK(scene.end());
    CHECK(scene.words[2] == kValue);
  });
}

TEST_CASE("work that is queued for memory faults when that was unmapped") {
  struct Queued {
    CUresult fault;
    void (*submit)(const Scene& scene);
  };
  const Queued all[] = {
      {CUDA_ERROR_ILLEGAL_ADDRESS,
       [](const Scene& scene) {
         OK(DRIVER(cuMemcpyDtoDAsync_v2)(scene.elsewhere, scene.range, kBytes, scene.stream));
       }},
      {CUDA_ERROR_LAUNCH_FAILED,
       [](const Scene& scene) {
         OK(DRIVER(cuMemcpyDtoHAsync_v2)(scene.words + 4, scene.range, 64, scene.stream));
       }},
      {CUDA_ERROR_LAUNCH_FAILED,
       [](const Scene& scene) {
         OK(DRIVER(cuMemcpyHtoDAsync_v2)(scene.range, scene.words, 64, scene.stream));
       }},
      {CUDA_ERROR_LAUNCH_FAILED,
       [](const Scene& scene) {
         OK(DRIVER(cuMemsetD32Async)(scene.range, 7, kBytes / 4, scene.stream));
       }},
      {CUDA_ERROR_LAUNCH_FAILED, [](const Scene& scene) {
         OK(DRIVER(cuStreamWriteValue32_v2)(scene.stream, scene.range, 7, 0));
       }}};
  for (const Queued& queued : all) {
    unit::inChild([&] {
      Scene scene;
      scene.begin(scene.elsewhere);
      queued.submit(scene);
      scene.unmap();
      OK(DRIVER(cuMemAddressFree)(scene.range, kBytes));
      EXPECT(queued.fault, scene.end());
    });
  }
}

TEST_CASE("a graph faults when memory of its copy was unmapped") {
  unit::inChild([] {
    const Scene scene;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    OK(DRIVER(cuStreamBeginCapture_v2)(scene.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(DRIVER(cuMemcpyDtoDAsync_v2)(scene.elsewhere, scene.range, kBytes, scene.stream));
    OK(DRIVER(cuStreamEndCapture)(scene.stream, &graph));
    OK(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    OK(DRIVER(cuGraphLaunch)(exec, scene.stream));
    OK(DRIVER(cuStreamSynchronize)(scene.stream));
    OK(DRIVER(cuMemUnmap)(scene.range, kBytes));
    OK(DRIVER(cuGraphLaunch)(exec, scene.stream));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, DRIVER(cuStreamSynchronize)(scene.stream));
  });
}

TEST_CASE("calls refuse memory that no device may access") {
  unit::inChild([] {
    Scene scene;
    scene.access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(DRIVER(cuMemSetAccess)(scene.range, kBytes, &scene.access, 1));
    unsigned value = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpyDtoH_v2)(&value, scene.range, 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemsetD32_v2)(scene.range, 3, 4));
    OK(DRIVER(cuCtxSynchronize)());
  });
}

TEST_CASE("a copy that is unmapped in flight ends whole or with a fault") {
  for (int round = 0; round < 4; ++round) {
    unit::inChild([] {
      Scene scene;
      OK(DRIVER(cuMemcpyDtoDAsync_v2)(scene.elsewhere, scene.range, kBytes, scene.stream));
      scene.unmap();
      const CUresult ended = DRIVER(cuStreamSynchronize)(scene.stream);
      const bool either = ended == CUDA_SUCCESS || ended == CUDA_ERROR_ILLEGAL_ADDRESS;
      CHECK(either);
    });
  }
}

TEST_CASE("memory is mapped and unmapped often beside kernels that use other memory") {
  unit::inChild([] {
    constexpr unsigned kBlocks = 8, kRounds = 200;
    Scene scene;
    void* parameters[] = {&scene.words, &scene.elsewhere};
    OK(DRIVER(cuLaunchKernel)(functionOf(kKernels, "count"), kBlocks, 1, 1, 1, 1, 1, 0,
                              scene.stream, parameters, nullptr));
    while (scene.word(1).load() == 0) std::this_thread::yield();
    for (unsigned round = 0; round < kRounds; ++round) {
      scene.unmap();
      OK(DRIVER(cuMemRelease)(scene.handle));
      scene.map(scene.handle);
    }
    OK(scene.end());
  });
}

}  // namespace
