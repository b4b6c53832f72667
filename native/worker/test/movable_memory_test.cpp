// The worker's own allocator before the simulated driver: what a program sees is what it sees of
// the driver's.
#include "native/worker/memory/movable_memory.h"

#include <array>
#include <vector>

#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"

namespace {

using worker::MovableMemory;
using worker::test::kMiB;
using Place = MovableMemory::Place;

constexpr std::uint64_t kLimit = 512 * kMiB;

struct Fixture : worker::test::SimulatedSession {
  Fixture() : SimulatedSession(kLimit) {}

  const worker::Driver& driver = session.driver;
  const worker::Driver& below = session.memory.below();

  CUdeviceptr allocate(std::uint64_t bytes) {
    const auto made = frames.call(CallNumber::cuMemAlloc_v2, bytes);
    REQUIRE(made.status == CUDA_SUCCESS);
    return made.handle;
  }
  CUresult free(CUdeviceptr address) {
    return frames.call(CallNumber::cuMemFree_v2, address).status;
  }
  template <class Value>
  Value ask(CUpointer_attribute attribute, CUdeviceptr address) {
    Value value{};
    CHECK(driver.cuPointerGetAttribute(&value, attribute, address) == CUDA_SUCCESS);
    return value;
  }
  CUmemGenericAllocationHandle handleAt(CUdeviceptr address) {
    CUmemGenericAllocationHandle handle = 0;
    void* there = reinterpret_cast<void*>(address);
    if (below.cuMemRetainAllocationHandle(&handle, there) != CUDA_SUCCESS) return 0;
    CHECK(below.cuMemRelease(handle) == CUDA_SUCCESS);
    return handle;
  }
};

}  // namespace

TEST_CASE("memory of each size comes from a handle; small requests share one") {
  Fixture test;
  const CUdeviceptr small = test.allocate(100), next = test.allocate(kMiB);
  const CUdeviceptr large = test.allocate(kMiB + 1);
  CHECK(test.handleAt(small) != 0);
  CHECK(test.handleAt(small) == test.handleAt(next));
  CHECK(test.handleAt(large) != 0);
  CHECK(test.handleAt(large) != test.handleAt(small));
  CHECK(small % 512 == 0);
  CHECK(test.quota.used() == 512 + kMiB + 2 * kMiB);
  for (const CUdeviceptr each : {small, next, large}) CHECK(test.free(each) == CUDA_SUCCESS);
  CHECK(test.quota.used() == 0);
  CHECK(test.handleAt(large) == 0);
}

TEST_CASE("an allocation ends where it was asked to") {
  Fixture test;
  std::array<char, 200> host{};
  const CUdeviceptr first = test.allocate(100), second = test.allocate(100);
  CHECK(test.session.memory.place(first + 99, 1) == Place::inside);
  CHECK(test.session.memory.place(first + 99, 2) == Place::outside);
  CHECK(test.session.memory.place(first + 100, 1) == Place::outside);
  CHECK(test.session.memory.place(1, 1) == Place::elsewhere);
  CHECK(test.driver.cuMemcpyHtoD_v2(first, host.data(), 100) == CUDA_SUCCESS);
  CHECK(test.driver.cuMemcpyHtoD_v2(first, host.data(), 101) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.driver.cuMemsetD8_v2(first + 1, 0, 100) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.driver.cuMemcpyDtoDAsync_v2(second, first, 101, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = first, copy.dstDevice = second;
  copy.srcPitch = copy.dstPitch = 25;
  copy.WidthInBytes = 25, copy.Height = 4, copy.Depth = 1;
  CHECK(test.driver.cuMemcpy3DAsync_v2(&copy, nullptr) == CUDA_SUCCESS);
  copy.dstXInBytes = 1;
  CHECK(test.driver.cuMemcpy3DAsync_v2(&copy, nullptr) == CUDA_ERROR_INVALID_VALUE);
  copy.dstXInBytes = ~std::size_t{0};
  CHECK(test.driver.cuMemcpy3DAsync_v2(&copy, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.free(first) == CUDA_SUCCESS);
  CHECK(test.driver.cuMemcpyHtoD_v2(first, host.data(), 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.free(first) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.free(second + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.free(second) == CUDA_SUCCESS);
}

TEST_CASE("what is asked about an address is answered for the allocation") {
  Fixture test;
  const CUdeviceptr first = test.allocate(100), second = test.allocate(700);
  CUcontext current = nullptr;
  CHECK(test.driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(test.ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, second + 5) == current);
  CHECK(test.ask<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, second + 5) == second);
  CHECK(test.ask<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, second + 5) == 700);
  CHECK(test.ask<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, first) !=
        test.ask<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, second));
  CHECK(test.ask<cuuint64_t>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, first) == 0);
  CHECK(test.ask<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, first) == 1);
  const unsigned off = 0;
  CHECK(test.driver.cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, first) ==
        CUDA_SUCCESS);
  CHECK(test.ask<int>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, first) == 0);
  const unsigned on = 1;
  CHECK(test.driver.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, second) ==
        CUDA_SUCCESS);
  CHECK(test.ask<int>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, second) == 1);
  CHECK(test.ask<int>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, first) == 0);
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  CHECK(test.driver.cuMemGetAddressRange_v2(&begin, &bytes, second + 699) == CUDA_SUCCESS);
  CHECK(begin == second);
  CHECK(bytes == 700);
  CHECK(test.driver.cuMemGetAddressRange_v2(&begin, &bytes, second + 700) == CUDA_ERROR_NOT_FOUND);
  int value = 0;
  CHECK(test.driver.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MAPPED, second + 700) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a program cannot treat it as a mapping of its own") {
  Fixture test;
  const CUdeviceptr memory = test.allocate(4 * kMiB);
  const std::uint64_t bytes = 4 * kMiB;
  CUmemAccessDesc none{.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                       .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
  CUmemGenericAllocationHandle handle = 0;
  unsigned long long flags = 7;
  CHECK(test.driver.cuMemUnmap(memory, bytes) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.driver.cuMemUnmap(memory, bytes / 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.driver.cuMemSetAccess(memory, bytes, &none, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.driver.cuMemAddressFree(memory, bytes) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.driver.cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(memory)) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(test.driver.cuMemGetAccess(&flags, &none.location, memory) == CUDA_SUCCESS);
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  CHECK(test.driver.cuMemsetD8_v2(memory, 1, bytes) == CUDA_SUCCESS);
  CHECK(test.free(memory) == CUDA_SUCCESS);
}

TEST_CASE("pages with little left in them are charged beyond what the node bears") {
  Fixture test;
  std::vector<CUdeviceptr> all;
  for (int i = 0; i < 16 * 4; ++i) all.push_back(test.allocate(kMiB / 2));
  CHECK(test.quota.used() == 32 * kMiB);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % 4 != 0) CHECK(test.free(all[i]) == CUDA_SUCCESS);
  CHECK(test.session.memory.slack() == 24 * kMiB);
  CHECK(test.quota.used() == 32 * kMiB - worker::SlackAccount::kFree);
  for (std::size_t i = 0; i < all.size(); i += 4) CHECK(test.free(all[i]) == CUDA_SUCCESS);
  CHECK(test.session.memory.slack() == 2 * kMiB);
  CHECK(test.quota.used() == 0);
}

TEST_CASE("so are pages whose memory was freed in stream order") {
  Fixture test;
  std::vector<CUdeviceptr> all;
  for (int i = 0; i < 16 * 4; ++i) all.push_back(test.allocate(kMiB / 2));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 4 != 0)
      CHECK(test.frames.call(CallNumber::cuMemFreeAsync, all[i], std::uint64_t{0}).status ==
            CUDA_SUCCESS);
  }
  CHECK(test.driver.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK_FALSE(test.session.pendingFrees.settle());
  CHECK(test.quota.used() == 32 * kMiB - worker::SlackAccount::kFree);
}

TEST_CASE("memory that a stream has freed is there for the next request") {
  Fixture test;
  std::size_t available = 0, total = 0;
  CHECK(test.below.cuMemGetInfo_v2(&available, &total) == CUDA_SUCCESS);
  CUdeviceptr rest = 0;
  CHECK(test.below.cuMemAlloc_v2(&rest, available - 64 * kMiB) == CUDA_SUCCESS);
  const CUdeviceptr memory = test.allocate(64 * kMiB);
  CHECK(test.frames.call(CallNumber::cuMemFreeAsync, memory, std::uint64_t{0}).status ==
        CUDA_SUCCESS);
  CHECK(test.driver.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(test.free(test.allocate(64 * kMiB)) == CUDA_SUCCESS);
  CHECK(test.below.cuMemFree_v2(rest) == CUDA_SUCCESS);
}

TEST_CASE("the page that is kept for small requests goes when the GPU is full") {
  Fixture test;
  CHECK(test.free(test.allocate(100)) == CUDA_SUCCESS);
  CHECK(test.session.memory.slack() == 2 * kMiB);
  std::size_t available = 0, total = 0;
  CHECK(test.below.cuMemGetInfo_v2(&available, &total) == CUDA_SUCCESS);
  CUdeviceptr rest = 0, last = 0;
  CHECK(test.below.cuMemAlloc_v2(&rest, available) == CUDA_SUCCESS);
  CHECK(test.driver.cuMemAlloc_v2(&last, 2 * kMiB) == CUDA_SUCCESS);
  CHECK(test.session.memory.slack() == 0);
  CHECK(test.driver.cuMemFree_v2(last) == CUDA_SUCCESS);
  CHECK(test.below.cuMemFree_v2(rest) == CUDA_SUCCESS);
}

TEST_CASE("memory ends with its context") {
  Fixture test;
  const auto other = test.frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
  REQUIRE(other.status == CUDA_SUCCESS);
  const CUdeviceptr small = test.allocate(100), large = test.allocate(4 * kMiB);
  CHECK(test.frames.call(CallNumber::cuMemFreeAsync, test.allocate(200), std::uint64_t{0}).status ==
        CUDA_SUCCESS);
  CHECK(test.frames.call(CallNumber::cuCtxDestroy_v2, other.handle).status == CUDA_SUCCESS);
  CHECK(test.handleAt(large) == 0);
  CHECK(test.session.memory.place(small, 1) == Place::elsewhere);
  CHECK(test.session.memory.slack() == 0);
  CHECK_FALSE(test.session.pendingFrees.any());
  CHECK(test.quota.used() == 0);
  REQUIRE(test.frames.call(CallNumber::cuCtxSetCurrent, test.context).status == CUDA_SUCCESS);
}

TEST_CASE("memory that is freed in stream order stays until the stream comes to it") {
  Fixture test;
  const CUdeviceptr memory = test.allocate(4 * kMiB);
  const auto stream = test.frames.call(CallNumber::cuStreamCreate, 1u);
  REQUIRE(stream.status == CUDA_SUCCESS);
  CHECK(test.frames.call(CallNumber::cuMemFreeAsync, memory, stream.handle).status == CUDA_SUCCESS);
  CHECK(test.frames.call(CallNumber::cuMemFreeAsync, memory, stream.handle).status ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(test.session.memory.place(memory, 1) == Place::outside);
  CHECK(test.frames.call(CallNumber::cuStreamSynchronize, stream.handle).status == CUDA_SUCCESS);
  CHECK_FALSE(test.session.pendingFrees.settle());
  CHECK(test.handleAt(memory) == 0);
  CHECK(test.quota.used() == 0);
}

TEST_CASE("freed memory leaves only behind the work of its context") {
  Fixture test;
  const CUdeviceptr memory = test.allocate(64 * kMiB);
  for (int i = 0; i < 20; ++i)
    CHECK(test.driver.cuMemsetD8Async(memory, 1, 64 * kMiB, nullptr) == CUDA_SUCCESS);
  CHECK(test.free(memory) == CUDA_SUCCESS);
  CHECK(test.driver.cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("a session whose accesses are checked has memory of the driver's own") {
  Fixture test;
  worker::Driver driver;
  worker::Driver again;
  for (worker::Driver* each : {&driver, &again})
    REQUIRE(worker::load(dlopen(unit::argument(0, "a driver"), RTLD_NOW | RTLD_LOCAL), *each));
  worker::Captures captures(driver);
  {
    MovableMemory exact(captures, [](CUcontext context) { return context; });
    exact.install(driver, true);
    CUdeviceptr memory = 0, pitched = 0;
    std::size_t pitch = 0;
    CHECK(driver.cuMemAlloc_v2(&memory, 100) == CUDA_SUCCESS);
    CHECK(test.handleAt(memory) == 0);
    CHECK(exact.place(memory, 101) == Place::outside);
    CHECK(driver.cuMemAllocPitch_v2(&pitched, &pitch, 100, 3, 4) == CUDA_SUCCESS);
    CHECK(pitch == 512);
    CHECK(exact.find(pitched + 3 * 512 - 1)->bytes == 3 * 512);
    CHECK(driver.cuMemFree_v2(memory) == CUDA_SUCCESS);
    CHECK(exact.place(memory, 1) == Place::elsewhere);
    MovableMemory::Parted freed = 0;
    CHECK(exact.freeBehind(pitched, nullptr, &freed) == CUDA_SUCCESS);
    CHECK(exact.freeBehind(pitched, nullptr, &freed) == CUDA_ERROR_INVALID_VALUE);
    CHECK(exact.place(pitched, 1) == Place::elsewhere);
    exact.release(freed);
  }
  test.session.memory.install(again, false);
}
