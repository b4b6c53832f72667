// Managed memory that moves: what it costs, what happens without quota, and ranges of a hostile
// client.
#include "native/worker/session/managed_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <thread>

#include "native/worker/accounts/page_tables.h"
#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"

namespace {

using worker::test::kMiB;
using worker::test::Reply;

constexpr std::uint64_t kBytes = 3 * kMiB;
constexpr std::uint64_t kLimit = 16 * kMiB;
constexpr wire::AddressRange kWindow{0x5502'0000'0000, 0x5502'4000'0000};
constexpr std::uint64_t kAddress = kWindow.begin;
constexpr std::uint64_t kOnGpuBytes = 4 * kMiB + worker::pageTables(wire::kManagedUnit);
constexpr auto kOnGpu = static_cast<std::uint32_t>(wire::ManagedPlace::gpu);
constexpr auto kPinned = static_cast<std::uint32_t>(wire::ManagedPlace::pinned);

struct Fixture : worker::test::SimulatedSession {
  int file = -1;

  Fixture() : SimulatedSession(kLimit) {
    REQUIRE(wire::reserve(kWindow));
    session.shared.window = kWindow;
  }
  ~Fixture() {
    frames.call(CallNumber::freeManaged, kAddress);
    munmap(reinterpret_cast<void*>(kWindow.begin), kWindow.end - kWindow.begin);
    close(file);
  }

  CUresult allocate(std::uint64_t address = kAddress, std::uint64_t bytes = kBytes) {
    close(file);
    file = worker::test::memoryFile("moves", kBytes, F_SEAL_SHRINK);
    session.shared.put(1, dup(file));
    return frames.call(CallNumber::allocateManaged, std::uint64_t{1}, address, bytes).status;
  }
  std::uint32_t place(bool pinned = false, CUresult expected = CUDA_SUCCESS) {
    const Reply reply = frames.call(CallNumber::placeManaged, kAddress, unsigned{pinned});
    CHECK(reply.status == expected);
    return static_cast<std::uint32_t>(reply.handle);
  }
  /// Another thread of the client moves a page to the host.
  CUresult moveByOther() {
    worker::test::Frames other(session);
    return other.call(CallNumber::moveManagedToHost, kAddress, kAddress, kAddress + 4096).status;
  }
  CUresult toGpu(wire::AddressRange range, std::uint64_t address = kAddress) {
    return frames
        .send(CallNumber::moveManagedToGpu,
              [&](wire::Encoder& frame) {
                frame.put(address);
                frame.putBytes(&range, sizeof range);
              })
        .status;
  }
  CUresult toHost(wire::AddressRange range, std::uint64_t address = kAddress) {
    return frames.call(CallNumber::moveManagedToHost, address, range).status;
  }
  std::string inFile() {
    char content[6] = {};
    CHECK(pread(file, content, 5, 0) == 5);
    return content;
  }
};

TEST_CASE_FIXTURE(Fixture, "memory takes quota when it gets its place, and moves both ways") {
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(quota.used() == 0);
  CHECK(figures.pinned.load() == kBytes);
  CHECK(toHost({kAddress, kAddress + 1}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(place() == kOnGpu);
  CHECK(place() == kOnGpu);
  CHECK(quota.used() == kOnGpuBytes);
  CHECK(toGpu({kAddress, kAddress + kBytes}) == CUDA_SUCCESS);
  frames.call(CallNumber::cuMemsetD8Async, kAddress + 1, static_cast<unsigned char>('x'),
              std::size_t{2}, std::uint64_t{0});
  CHECK(session.driver.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(inFile() == "moves");
  CHECK(toHost({kAddress, kAddress + 4096}) == CUDA_SUCCESS);
  CHECK(inFile() == "mxxes");
  CHECK(frames.call(CallNumber::freeManaged, kAddress).status == CUDA_SUCCESS);
  CHECK(quota.used() == 0);
  CHECK(figures.pinned.load() == 0);
}

TEST_CASE_FIXTURE(Fixture, "the last byte of the quota decides the place") {
  REQUIRE(quota.charge(kLimit - kOnGpuBytes));
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kOnGpu);
  CHECK(quota.used() == kLimit);
  CHECK(frames.call(CallNumber::freeManaged, kAddress).status == CUDA_SUCCESS);
  REQUIRE(quota.charge(1));
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kPinned);
  CHECK(quota.used() == kLimit - kOnGpuBytes + 1);
}

TEST_CASE_FIXTURE(Fixture, "memory without quota is shared where the program has it") {
  REQUIRE(quota.charge(kLimit - kMiB));
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kPinned);
  frames.call(CallNumber::cuMemsetD8Async, kAddress, static_cast<unsigned char>('g'),
              std::size_t{1}, std::uint64_t{0});
  CHECK(session.driver.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(inFile() == "goves");
  CHECK(toGpu({kAddress, kAddress + 1}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(frames.call(CallNumber::cuMemFreeHost, kAddress).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(figures.pinned.load() == kBytes);
  CHECK(frames.call(CallNumber::freeManaged, kAddress).status == CUDA_SUCCESS);
  CHECK(quota.used() == kLimit - kMiB);
}

TEST_CASE_FIXTURE(Fixture, "ranges outside of the memory are refused") {
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kOnGpu);
  const wire::AddressRange wrong[] = {
      {kAddress - 1, kAddress + 1},  {kAddress, kAddress + kBytes + 1},
      {kAddress + 8, kAddress},      {kAddress + kBytes, kAddress + kBytes + 8},
      {kAddress, ~std::uint64_t{0}}, {0, kAddress + 8},
  };
  for (const wire::AddressRange& range : wrong) {
    CHECK(toGpu(range) == CUDA_ERROR_INVALID_VALUE);
    CHECK(toHost(range) == CUDA_ERROR_INVALID_VALUE);
  }
  CHECK(toGpu({kAddress + 1, kAddress + 2}, kAddress + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(frames.call(CallNumber::cuMemFreeHost, kAddress).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(frames.call(CallNumber::freeManaged, kAddress + 1).status == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "addresses outside of the window, odd or taken ones are refused") {
  CHECK(allocate(kAddress + 4096) == CUDA_ERROR_INVALID_VALUE);
  CHECK(allocate(kWindow.end) == CUDA_ERROR_INVALID_VALUE);
  CHECK(allocate(kAddress, kBytes + 4096) == CUDA_ERROR_INVALID_VALUE);
  CHECK(allocate(kAddress, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(allocate(kAddress, ~std::uint64_t{0} & ~4095) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(allocate() == CUDA_ERROR_INVALID_VALUE);
  session.shared.put(2, worker::test::memoryFile("", kBytes, F_SEAL_SHRINK));
  CHECK(!session.shared.map(2, kAddress + 16 * kMiB, 4096));
}

TEST_CASE_FIXTURE(Fixture, "a client cannot unmap or take the GPU's part") {
  using enum CallNumber;
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kOnGpu);
  const std::size_t bytes = 4 * kMiB;
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  for (const std::uint64_t begin : {kAddress, kAddress - kMiB, kAddress + kMiB}) {
    CHECK(frames.call(cuMemUnmap, begin, bytes).status == CUDA_ERROR_INVALID_VALUE);
    CHECK(frames.call(cuMemAddressFree, begin, bytes).status == CUDA_ERROR_INVALID_VALUE);
    const Reply changed = frames.send(cuMemSetAccess, [&](wire::Encoder& frame) {
      frame.put(begin);
      frame.put(bytes);
      frame.putBytes(&access, sizeof access);
      frame.put<std::uint64_t>(1);
    });
    CHECK(changed.status == CUDA_ERROR_INVALID_VALUE);
  }
  CHECK(frames.call(cuMemRetainAllocationHandle, kAddress).status == CUDA_ERROR_INVALID_VALUE);
  const std::uint64_t other =
      frames.call(cuMemCreate, bytes, worker::test::deviceMemory(), 0ull).handle;
  CHECK(frames.call(cuMemMap, kAddress + 4 * kMiB, bytes, std::uint64_t{0}, other, 0ull).status ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(frames.call(cuMemRelease, other).status == CUDA_SUCCESS);
  CHECK(quota.used() == kOnGpuBytes);
  CHECK(toGpu({kAddress, kAddress + kBytes}) == CUDA_SUCCESS);
}

CUresult fails(void*, std::size_t, unsigned) { return CUDA_ERROR_OPERATING_SYSTEM; }

TEST_CASE_FIXTURE(Fixture, "memory that the driver does not pin gets no place, and another try") {
  REQUIRE(allocate() == CUDA_SUCCESS);
  const auto before = std::exchange(session.driver.cuMemHostRegister_v2, fails);
  CHECK(place(true, CUDA_ERROR_OPERATING_SYSTEM) == 0);
  CHECK(place(true, CUDA_ERROR_OPERATING_SYSTEM) == 0);
  CHECK(!session.shared.contains(kAddress, 1));
  session.driver.cuMemHostRegister_v2 = before;
  CHECK(place(true) == kPinned);
  CHECK(session.shared.contains(kAddress, kBytes));
  CHECK(quota.used() == 0);
}

TEST_CASE_FIXTURE(Fixture, "GPU memory without access from the GPU is given back") {
  REQUIRE(allocate() == CUDA_SUCCESS);
  const auto before = session.driver.cuMemSetAccess;
  session.driver.cuMemSetAccess = [](CUdeviceptr, std::size_t, const CUmemAccessDesc*,
                                     std::size_t) { return CUDA_ERROR_OPERATING_SYSTEM; };
  CHECK(place() == kPinned);
  CHECK(quota.used() == 0);
  session.driver.cuMemSetAccess = before;
}

TEST_CASE_FIXTURE(Fixture, "what the driver does not give back stays charged and usable") {
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kOnGpu);
  const auto refuse = [](CUdeviceptr, std::size_t) { return CUDA_ERROR_OPERATING_SYSTEM; };
  const worker::Driver before = session.driver;
  session.driver.cuMemUnmap = refuse;
  CHECK(frames.call(CallNumber::freeManaged, kAddress).status == CUDA_ERROR_OPERATING_SYSTEM);
  CHECK(quota.used() == kOnGpuBytes);
  CHECK(figures.pinned.load() == kBytes);
  CHECK(toGpu({kAddress, kAddress + kBytes}) == CUDA_SUCCESS);
  CHECK(toHost({kAddress, kAddress + kBytes}) == CUDA_SUCCESS);
  CHECK(inFile() == "moves");
  session.driver.cuMemUnmap = before.cuMemUnmap;
  session.driver.cuMemAddressFree = refuse;
  CHECK(frames.call(CallNumber::freeManaged, kAddress).status == CUDA_ERROR_OPERATING_SYSTEM);
  CHECK(quota.used() == kOnGpuBytes);
  session.driver.cuMemAddressFree = before.cuMemAddressFree;
  CHECK(frames.call(CallNumber::freeManaged, kAddress).status == CUDA_SUCCESS);
  CHECK(quota.used() == 0);
  CHECK(figures.pinned.load() == 0);
}

std::function<void()> duringCall;
CUresult (*destroy)(CUcontext) = nullptr;
CUresult (*pinPages)(void*, std::size_t, unsigned) = nullptr;

TEST_CASE_FIXTURE(Fixture, "no move uses a context that the driver destroys") {
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kOnGpu);
  CUresult moved = CUDA_SUCCESS;
  duringCall = [&] { moved = moveByOther(); };
  destroy = std::exchange(session.driver.cuCtxDestroy_v2, [](CUcontext ending) {
    std::thread(duringCall).join();
    return destroy(ending);
  });
  CHECK(frames.call(CallNumber::cuCtxDestroy_v2, context).status == CUDA_SUCCESS);
  CHECK(moved == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  session.driver.cuCtxDestroy_v2 = destroy;
  context = frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0}).handle;
}

TEST_CASE_FIXTURE(Fixture, "a move does not wait for the place of other memory") {
  constexpr std::uint64_t kOther = kAddress + wire::kManagedUnit;
  REQUIRE(allocate(kOther) == CUDA_SUCCESS);
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kOnGpu);
  CUresult moved = CUDA_ERROR_UNKNOWN;
  duringCall = [&] { moved = moveByOther(); };
  pinPages = std::exchange(session.driver.cuMemHostRegister_v2,
                           [](void* pages, std::size_t bytes, unsigned flags) {
                             std::thread(duringCall).join();
                             return pinPages(pages, bytes, flags);
                           });
  CHECK(frames.call(CallNumber::placeManaged, kOther, 1u).status == CUDA_SUCCESS);
  CHECK(moved == CUDA_SUCCESS);
  session.driver.cuMemHostRegister_v2 = pinPages;
  CHECK(frames.call(CallNumber::freeManaged, kOther).status == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "a free beside a capture leaves it valid") {
  const worker::Driver& driver = session.driver;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kOnGpu);
  CHECK(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(frames.call(CallNumber::freeManaged, kAddress).status == CUDA_SUCCESS);
  CHECK(driver.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  CHECK(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(driver.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "memory that outlives its context is freed") {
  const std::uint64_t other = frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0}).handle;
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kOnGpu);
  CHECK(frames.call(CallNumber::cuCtxDestroy_v2, other).status == CUDA_SUCCESS);
  CHECK(toGpu({kAddress, kAddress + 8}) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(frames.call(CallNumber::freeManaged, kAddress).status == CUDA_SUCCESS);
  CHECK(quota.used() == 0);
}

}  // namespace
