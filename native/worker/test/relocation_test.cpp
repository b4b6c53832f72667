// A session moves between two simulated GPUs, and its program reaches only the one that it has.
#include "native/worker/session/relocation.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "native/worker/driver/devices.h"
#include "native/worker/driver/own_device.h"
#include "native/worker/session/control.h"
#include "native/worker/test/played_arbiter.h"
#include "native/worker/test/session_fixture.h"

namespace {

using worker::OwnedFile;
using worker::test::deviceMemory;
using worker::test::devicePool;
using worker::test::kMiB;
using worker::test::memoryNode;

constexpr std::uint64_t kLong = 60'000'000'000, kBytes = 4 * kMiB;

constexpr const char* kAdd = R"(.version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 total = 1000;
.visible .entry add(.param .u64 at)
{
  .reg .u32 %r<4>;
  .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [at];
  mov.u64 %rd2, total;
  ld.global.u32 %r1, [%rd2];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%rd2], %r1;
  st.global.u32 [%rd1], %r1;
  ret;
})";

constexpr const char* kManaged = R"(.version 7.0
.target sm_70
.address_size 64
.global .attribute(.managed) .align 4 .u32 shared;
)";

std::vector<std::uint32_t> words(std::uint32_t value) {
  return std::vector<std::uint32_t>(kBytes / sizeof value, value);
}

/// Three GPUs, of which the last one is of another model.
struct Machine {
  Machine() {
    setenv("NVIDIA_VIRTUAL_SIMULATED_GPUS", "3", 1);
    setenv("NVIDIA_VIRTUAL_SIMULATED_MEMORY", "1GiB,1GiB,2GiB", 1);
  }
};

struct Moving : Machine, worker::test::SimulatedSession {
  Moving() : SimulatedSession(512 * kMiB) {}

  const worker::Driver& driver = session.driver;
  worker::Suspension suspension{session};

  std::string uuid(CUdevice device) const {
    CUuuid uuid{};
    CHECK(driver.cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS);
    return worker::uuidText(uuid);
  }
  CUdeviceptr allocate(std::uint32_t value) {
    const auto made = frames.call(CallNumber::cuMemAlloc_v2, kBytes);
    REQUIRE(made.status == CUDA_SUCCESS);
    CHECK(driver.cuMemcpyHtoD_v2(made.handle, words(value).data(), kBytes) == CUDA_SUCCESS);
    return made.handle;
  }
  std::vector<std::uint32_t> read(CUdeviceptr address) const {
    std::vector<std::uint32_t> read = words(0);
    CHECK(driver.cuMemcpyDtoH_v2(read.data(), address, kBytes) == CUDA_SUCCESS);
    return read;
  }
  void leave() {
    CHECK(suspension.suspend(kLong).empty());
    const std::uint64_t bytes = session.swap.bytes(), lacking = session.swap.lacking(bytes);
    OwnedFile file;
    if (lacking > 0)
      file = OwnedFile(worker::test::memoryFile({}, lacking, F_SEAL_SHRINK | F_SEAL_GROW));
    CHECK(suspension.leave(bytes, std::move(file)).empty());
  }
};

}  // namespace

TEST_CASE("a session moves 100 times, with memory, code, streams and graphs") {
  unit::inChild([] {
    Moving test;
    const worker::Driver& driver = test.driver;
    const CUdeviceptr kept = test.allocate(7), written = test.allocate(0);
    CUmodule module = nullptr;
    CUfunction add = nullptr;
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    CHECK(driver.cuModuleLoadDataEx(&module, kAdd, 0, nullptr, nullptr) == CUDA_SUCCESS);
    CHECK(driver.cuModuleGetFunction(&add, module, "add") == CUDA_SUCCESS);
    CHECK(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CUdeviceptr at = written;
    void* parameters[] = {&at};
    const auto launch = [&] {
      return driver.cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
    };
    CHECK(driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    CHECK(launch() == CUDA_SUCCESS);
    CHECK(driver.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    CHECK(driver.cuGraphInstantiateWithParams(&executable, graph, &params) == CUDA_SUCCESS);
    std::uint32_t total = 1000;
    for (int move = 0; move < 100; ++move) {
      const std::string target = test.uuid(1);
      test.leave();
      CHECK(test.suspension.move(target) == "");
      CHECK(test.uuid(0) == target);
      CHECK(test.suspension.move(target) == "");
      CHECK(test.suspension.resume().empty());
      CHECK(driver.cuGraphLaunch(executable, stream) == CUDA_SUCCESS);
      CHECK(launch() == CUDA_SUCCESS);
      CHECK(driver.cuStreamSynchronize(stream) == CUDA_SUCCESS);
      total += 2;
      CHECK(test.read(written).front() == total);
      CHECK(test.read(kept) == words(7));
    }
    CHECK(driver.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
  });
}

TEST_CASE("a session moves only when it is suspended and its memory has left") {
  unit::inChild([] {
    Moving test;
    const std::string here = test.uuid(0), target = test.uuid(1);
    const CUdeviceptr memory = test.allocate(7);
    CHECK(test.suspension.move(here) == "");
    CHECK(test.suspension.move(target) == "it is not suspended");
    CHECK(test.suspension.suspend(kLong).empty());
    CHECK(test.suspension.move(target) == "its GPU memory has not left");
    test.leave();
    CHECK(test.suspension.move("GPU-nowhere") ==
          "its worker does not see GPU GPU-nowhere: it began before allocations could move");
    CHECK(test.suspension.move(target) == "");
    CHECK(test.suspension.resume().empty());
    CHECK(test.read(memory) == words(7));
  });
}

TEST_CASE("a session that the driver refuses to move goes on where it was") {
  unit::inChild([] {
    Moving test;
    const std::string here = test.uuid(0);
    const CUdeviceptr memory = test.allocate(7);
    test.leave();
    CHECK(test.suspension.move(test.uuid(2)) ==
          "the driver cannot bring it to the other GPU: CUDA_ERROR_INVALID_VALUE");
    CHECK(test.uuid(0) == here);
    CHECK(test.suspension.resume().empty());
    CHECK(test.read(memory) == words(7));
  });
}

TEST_CASE("a session with a managed variable stays where it is, and goes on") {
  unit::inChild([] {
    Moving test;
    const std::string here = test.uuid(0);
    const CUdeviceptr memory = test.allocate(7);
    CUmodule module = nullptr;
    CHECK(test.driver.cuModuleLoadDataEx(&module, kManaged, 0, nullptr, nullptr) == CUDA_SUCCESS);
    test.leave();
    CHECK(test.suspension.move(test.uuid(1)) ==
          "the driver cannot take it from its GPU: CUDA_ERROR_NOT_SUPPORTED, as for programs with "
          "__managed__ variables");
    CHECK(test.uuid(0) == here);
    CHECK(test.suspension.resume().empty());
    CHECK(test.read(memory) == words(7));
    CHECK(test.driver.cuModuleUnload(module) == CUDA_SUCCESS);
    test.leave();
    CHECK(test.suspension.move(test.uuid(1)) == "");
  });
}

namespace {

/// A session with an arbiter, which closes the gate while the driver restores the process.
struct Ruled : Moving {
  const std::string path = "/tmp/relocation-test-" + std::to_string(getpid());
  worker::test::PlayedArbiter played{path};
  static inline Ruled* only = nullptr;
  decltype(worker::Driver::cuCheckpointProcessRestore) restore = nullptr;
  bool answered = false;

  Ruled() {
    only = this;
    worker::Driver below = session.memory.below();
    restore =
        std::exchange(below.cuCheckpointProcessRestore, [](int pid, CUcheckpointRestoreArgs* args) {
          const auto word = only->played.set(arbiter::Grant::closed);
          only->answered = only->played.drained(word);
          return only->restore(pid, args);
        });
    session.memory.install(below, false);
    session.gate.open(path);
    played.introduce(arbiter::Grant::open);
  }
};

}  // namespace

TEST_CASE("a session that moves answers the arbiter, so the move is no overrun") {
  unit::inChild([] {
    Ruled test;
    const CUdeviceptr memory = test.allocate(7);
    test.leave();
    CHECK(test.suspension.move(test.uuid(1)) == "");
    CHECK(test.answered);
    CHECK(test.suspension.resume().empty());
    CHECK(test.read(memory) == words(7));
  });
}

namespace {

/// As a session whose worker sees GPUs to which it may move.
struct Confined : Machine, worker::test::SimulatedSession {
  Confined() : SimulatedSession(512 * kMiB) {
    worker::Driver guarded = session.memory.below();
    worker::allowFirstDeviceOnly(guarded);
    session.memory.install(guarded, false);
    session.driver = guarded;
  }
};

}  // namespace

TEST_CASE("a program gets nothing of a GPU to which it may move") {
  unit::inChild([] {
    Confined test;
    const worker::Driver& driver = test.session.driver;
    const CUmemLocation other{CU_MEM_LOCATION_TYPE_DEVICE, 1};
    const auto call = [&](auto... arguments) { return test.frames.call(arguments...).status; };
    constexpr CUdevice kOther = 1;
    CHECK(call(CallNumber::cuCtxCreate_v4, 0u, kOther) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(call(CallNumber::cuDevicePrimaryCtxRetain, kOther) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(call(CallNumber::cuDevicePrimaryCtxReset_v2, kOther) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(call(CallNumber::cuDeviceGetMemPool, kOther) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(call(CallNumber::cuDeviceGetDefaultMemPool, kOther) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(call(CallNumber::cuMemGetDefaultMemPool, other, CU_MEM_ALLOCATION_TYPE_PINNED) ==
          CUDA_ERROR_INVALID_DEVICE);
    CUmemAllocationProp memory = deviceMemory();
    memory.location = other;
    CHECK(call(CallNumber::cuMemCreate, kBytes, memory, 0ull) == CUDA_ERROR_INVALID_DEVICE);
    CUmemPoolProps pool = devicePool();
    pool.location = other;
    CHECK(call(CallNumber::cuMemPoolCreate, pool) == CUDA_ERROR_INVALID_DEVICE);
    CUgraphNodeParams node = memoryNode(kBytes);
    const auto graph = test.frames.call(CallNumber::cuGraphCreate, 0u);
    CHECK(worker::test::addNode(test.frames, graph.handle, node).status == CUDA_SUCCESS);
    node.alloc.poolProps.location = other;
    CHECK(worker::test::addNode(test.frames, graph.handle, node).status ==
          CUDA_ERROR_INVALID_DEVICE);
    CHECK(call(CallNumber::cuGraphDestroy, graph.handle) == CUDA_SUCCESS);

    memory.location.id = 0;
    const CUmemAccessDesc accesses[] = {{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, {}}, {other, {}}};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr at = 0;
    CHECK(driver.cuMemCreate(&handle, kBytes, &memory, 0) == CUDA_SUCCESS);
    CHECK(driver.cuMemAddressReserve(&at, kBytes, 0, 0, 0) == CUDA_SUCCESS);
    CHECK(driver.cuMemMap(at, kBytes, 0, handle, 0) == CUDA_SUCCESS);
    CHECK(driver.cuMemSetAccess(at, kBytes, accesses, 2) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(driver.cuMemSetAccess(at, kBytes, accesses, 1) == CUDA_SUCCESS);
    CHECK(driver.cuMemUnmap(at, kBytes) == CUDA_SUCCESS);
    CHECK(driver.cuMemRelease(handle) == CUDA_SUCCESS);
  });
}
