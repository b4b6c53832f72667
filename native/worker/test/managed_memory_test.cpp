// Managed memory that moves: what it costs, what happens without quota, and ranges of a hostile
// client.
#include "native/worker/session/managed_memory.h"

#include <sys/mman.h>

#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"

namespace {

using worker::test::kMiB;
using worker::test::Reply;

constexpr std::uint64_t kBytes = 3 * kMiB;
constexpr std::uint64_t kLimit = 16 * kMiB;
constexpr wire::AddressRange kWindow{0x5502'0000'0000, 0x5502'4000'0000};
constexpr std::uint64_t kAddress = kWindow.begin;
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
  std::uint32_t place(bool pinned = false) {
    const Reply reply = frames.call(CallNumber::placeManaged, kAddress, unsigned{pinned});
    CHECK(reply.status == CUDA_SUCCESS);
    return static_cast<std::uint32_t>(reply.handle);
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
  CHECK(quota.used() >= 4 * kMiB);
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

TEST_CASE_FIXTURE(Fixture, "a client that unmaps the GPU's part pays and frees correctly") {
  REQUIRE(allocate() == CUDA_SUCCESS);
  CHECK(place() == kOnGpu);
  CHECK(frames.call(CallNumber::cuMemUnmap, kAddress, std::size_t{4 * kMiB}).status ==
        CUDA_SUCCESS);
  toGpu({kAddress, kAddress + kBytes});
  CHECK(frames.call(CallNumber::freeManaged, kAddress).status == CUDA_SUCCESS);
  CHECK(quota.used() == 0);
  CHECK(allocate() == CUDA_SUCCESS);
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
