// The GPU memory of a session leaves and comes back, with the simulated driver.
#include "native/worker/session/swap.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "native/worker/session/suspension.h"
#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"

namespace {

using worker::OwnedFile;
using worker::test::kMiB;

constexpr std::uint64_t kLimit = 512 * kMiB, kLong = 60'000'000'000, kAll = kLimit;

OwnedFile arenaOf(std::uint64_t bytes) {
  return OwnedFile(worker::test::memoryFile({}, bytes, F_SEAL_SHRINK | F_SEAL_GROW));
}

/// Bytes that differ from those of other seeds, and within each page.
std::vector<std::uint32_t> pattern(std::uint64_t bytes, std::uint32_t seed) {
  std::vector<std::uint32_t> words(bytes / sizeof(std::uint32_t));
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = (seed + static_cast<std::uint32_t>(i)) * 2'654'435'761u;
  return words;
}

struct Swapping : worker::test::SimulatedSession {
  Swapping() : SimulatedSession(kLimit) {}

  worker::Suspension suspension{session};
  const worker::Driver& driver = session.driver;
  worker::Driver& below = const_cast<worker::Driver&>(session.memory.below());

  CUdeviceptr allocate(std::uint64_t bytes) {
    const auto made = frames.call(CallNumber::cuMemAlloc_v2, bytes);
    REQUIRE(made.status == CUDA_SUCCESS);
    return made.handle;
  }
  void fill(CUdeviceptr address, std::uint64_t bytes, std::uint32_t seed) {
    CHECK(driver.cuMemcpyHtoD_v2(address, pattern(bytes, seed).data(), bytes) == CUDA_SUCCESS);
  }
  bool has(CUdeviceptr address, std::uint64_t bytes, std::uint32_t seed) {
    std::vector<std::uint32_t> words(bytes / sizeof(std::uint32_t));
    CHECK(driver.cuMemcpyDtoH_v2(words.data(), address, bytes) == CUDA_SUCCESS);
    return words == pattern(bytes, seed);
  }
  /// Fills what the driver has, and says how much it was.
  std::uint64_t freeBytes() {
    std::size_t free = 0, total = 0;
    CHECK(below.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS);
    return free;
  }
  CUmemGenericAllocationHandle create(std::uint64_t bytes, unsigned handleTypes = 0) {
    CUmemAllocationProp properties = worker::test::deviceMemory();
    properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handleTypes);
    CUmemGenericAllocationHandle handle = 0;
    REQUIRE(driver.cuMemCreate(&handle, bytes, &properties, 0) == CUDA_SUCCESS);
    return handle;
  }
  CUdeviceptr reserve(std::uint64_t bytes) {
    CUdeviceptr address = 0;
    REQUIRE(driver.cuMemAddressReserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS);
    return address;
  }
  void map(CUdeviceptr at, std::uint64_t bytes, CUmemGenericAllocationHandle handle) {
    CHECK(driver.cuMemMap(at, bytes, 0, handle, 0) == CUDA_SUCCESS);
  }
  CUresult allow(CUdeviceptr at, std::uint64_t bytes, CUmemAccess_flags flags) {
    const CUmemAccessDesc access{.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = flags};
    return driver.cuMemSetAccess(at, bytes, &access, 1);
  }
  CUdeviceptr mapNew(std::uint64_t bytes) {
    const auto handle = create(bytes);
    const CUdeviceptr at = reserve(bytes);
    map(at, bytes, handle);
    CHECK(driver.cuMemRelease(handle) == CUDA_SUCCESS);
    CHECK(allow(at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
    return at;
  }
  void unmap(CUdeviceptr at, std::uint64_t bytes) {
    CHECK(driver.cuMemUnmap(at, bytes) == CUDA_SUCCESS);
    CHECK(driver.cuMemAddressFree(at, bytes) == CUDA_SUCCESS);
  }
  void free(CUdeviceptr address) {
    CHECK(frames.call(CallNumber::cuMemFree_v2, address).status == CUDA_SUCCESS);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Swapping,
                  "memory of each size comes back with its bytes, and is free meanwhile") {
  const CUdeviceptr small = allocate(4096), next = allocate(kMiB), large = allocate(5 * kMiB);
  fill(small, 4096, 1), fill(next, kMiB, 2), fill(large, 5 * kMiB, 3);
  const std::uint64_t before = freeBytes(), used = quota.used();
  CHECK(suspension.suspend(kLong).empty());
  CHECK(session.swap.bytes() == 8 * kMiB);
  CHECK(suspension.leave(kAll, arenaOf(8 * kMiB)).empty());
  CHECK(session.swap.outBytes() > 0);
  CHECK(session.swap.bytes() == 0);
  CHECK(freeBytes() == before + 8 * kMiB);
  CHECK(quota.used() == used);
  CHECK(suspension.leave(kAll, OwnedFile()).empty());
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.drop() == "its GPU memory is in the arena");
  CHECK(suspension.resume().empty());
  CHECK(session.swap.outBytes() == 0);
  CHECK(freeBytes() == before);
  CHECK(has(small, 4096, 1));
  CHECK(has(next, kMiB, 2));
  CHECK(has(large, 5 * kMiB, 3));
  for (const CUdeviceptr each : {small, next, large}) free(each);
  CHECK(quota.used() == 0);
}

TEST_CASE_FIXTURE(Swapping, "memory that the program maps itself comes back as it was mapped") {
  constexpr std::uint64_t kBytes = 4 * kMiB;
  const auto once = create(kBytes), twice = create(kBytes), unmapped = create(kBytes);
  const CUdeviceptr first = reserve(kBytes), both = reserve(2 * kBytes), later = reserve(kBytes);
  map(first, kBytes, once);
  map(both, kBytes, twice), map(both + kBytes, kBytes, twice);
  map(later, kBytes, unmapped);
  for (const CUdeviceptr at : {first, both, later})
    CHECK(allow(at, kBytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  fill(first, kBytes, 1), fill(both, kBytes, 2), fill(later, kBytes, 3);
  CHECK(driver.cuMemUnmap(later, kBytes) == CUDA_SUCCESS);
  CHECK(allow(first, kBytes, CU_MEM_ACCESS_FLAGS_PROT_NONE) == CUDA_SUCCESS);
  CHECK(driver.cuMemRelease(once) == CUDA_SUCCESS);
  const std::uint64_t before = freeBytes();

  CHECK(suspension.suspend(kLong).empty());
  CHECK(session.swap.bytes() == 3 * kBytes);
  CHECK(suspension.leave(kAll, arenaOf(3 * kBytes)).empty());
  CHECK(freeBytes() == before + 3 * kBytes);
  CHECK(suspension.resume().empty());
  CHECK(freeBytes() == before);

  unsigned long long access = 7;
  const CUmemLocation gpu{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CHECK(driver.cuMemGetAccess(&access, &gpu, first) == CUDA_SUCCESS);
  CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  CHECK(driver.cuMemGetAccess(&access, &gpu, both + kBytes) == CUDA_SUCCESS);
  CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  CHECK(allow(first, kBytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  CHECK(allow(both + kBytes, kBytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  map(later, kBytes, unmapped);
  CHECK(allow(later, kBytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  CHECK(has(first, kBytes, 1));
  CHECK(has(both, kBytes, 2));
  CHECK(has(both + kBytes, kBytes, 2));
  CHECK(has(later, kBytes, 3));
  CUmemGenericAllocationHandle again = 0;
  CHECK(driver.cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(first)) == CUDA_SUCCESS);
  CHECK(again == once);
  CHECK(driver.cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(both)) == CUDA_SUCCESS);
  CHECK(again == twice);
  for (const auto handle : {once, twice, twice, unmapped})
    CHECK(driver.cuMemRelease(handle) == CUDA_SUCCESS);
  unmap(first, kBytes), unmap(both, 2 * kBytes), unmap(later, kBytes);
  CHECK(freeBytes() == before + 3 * kBytes);
}

TEST_CASE_FIXTURE(Swapping,
                  "memory of pools leaves, but for what is free in them, and comes back") {
  CUstream stream = nullptr;
  CHECK(driver.cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
  CUdeviceptr first = 0, second = 0, third = 0;
  CUmemoryPool pool = nullptr;
  CHECK(driver.cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  cuuint64_t threshold = 128 * kMiB, reserved = 0;
  CHECK(driver.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) ==
        CUDA_SUCCESS);
  CHECK(driver.cuMemAllocAsync(&first, 4096, stream) == CUDA_SUCCESS);
  CHECK(driver.cuMemAllocAsync(&second, 40 * kMiB, stream) == CUDA_SUCCESS);
  CHECK(driver.cuMemAllocAsync(&third, 100 * kMiB, stream) == CUDA_SUCCESS);
  CHECK(driver.cuMemFreeAsync(third, stream) == CUDA_SUCCESS);
  CHECK(driver.cuMemFreeAsync(first, stream) == CUDA_SUCCESS);
  CHECK(driver.cuStreamSynchronize(stream) == CUDA_SUCCESS);
  fill(second, 40 * kMiB, 1);
  CHECK(suspension.suspend(kLong).empty());
  const std::uint64_t before = freeBytes();
  CHECK(session.swap.bytes() == 64 * kMiB);
  CHECK(suspension.leave(kAll, arenaOf(64 * kMiB)).empty());
  CHECK(freeBytes() == before + 64 * kMiB);
  CHECK(suspension.resume().empty());
  CHECK(has(second, 40 * kMiB, 1));
  CHECK(driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) ==
        CUDA_SUCCESS);
  CHECK(reserved == 64 * kMiB);
  CHECK(driver.cuMemAllocAsync(&third, 4096, stream) == CUDA_SUCCESS);
  CHECK(third == first);
  for (const CUdeviceptr each : {second, third})
    CHECK(driver.cuMemFreeAsync(each, stream) == CUDA_SUCCESS);
  CHECK(driver.cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
  CHECK(driver.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Swapping, "without room on the GPU, the session stays suspended") {
  const CUdeviceptr memory = allocate(64 * kMiB), other = mapNew(32 * kMiB);
  fill(memory, 64 * kMiB, 1), fill(other, 32 * kMiB, 2);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.leave(kAll, arenaOf(96 * kMiB)).empty());
  CUdeviceptr taken = 0;
  CHECK(below.cuMemAlloc_v2(&taken, freeBytes() - 70 * kMiB) == CUDA_SUCCESS);
  const std::uint64_t left = freeBytes();
  for (int i = 0; i < 2; ++i)
    CHECK(suspension.resume() == "the GPU has no room for 96 MiB of its memory");
  CHECK(freeBytes() == left);
  CHECK(session.swap.outBytes() > 0);
  CHECK(below.cuMemFree_v2(taken) == CUDA_SUCCESS);
  CHECK(suspension.resume().empty());
  CHECK(has(memory, 64 * kMiB, 1));
  CHECK(has(other, 32 * kMiB, 2));
  unmap(other, 32 * kMiB);
  free(memory);
}

TEST_CASE_FIXTURE(Swapping, "memory leaves and comes back in whole pieces") {
  std::vector<CUdeviceptr> each;
  for (std::uint32_t mib = 2; mib <= 10; mib += 2) {
    each.push_back(allocate(mib * kMiB));
    fill(each.back(), mib * kMiB, mib);
  }
  const std::uint64_t before = freeBytes();
  const auto out = [&] {
    CHECK(freeBytes() == before + session.swap.outBytes());
    CHECK(session.swap.bytes() == 30 * kMiB - session.swap.outBytes());
    return session.swap.outBytes() / kMiB;
  };
  CHECK(suspension.suspend(kLong).empty());
  CHECK(session.swap.lacking(1) == 2 * kMiB);
  CHECK(session.swap.lacking(14 * kMiB) == 14 * kMiB);
  CHECK(suspension.leave(14 * kMiB, arenaOf(14 * kMiB)).empty());
  CHECK(out() == 14);
  CHECK(suspension.leave(0, OwnedFile()).empty());
  CHECK(session.swap.lacking(7 * kMiB) == 8 * kMiB);
  CHECK(suspension.leave(7 * kMiB, OwnedFile()) == "its arena is smaller than 22 MiB");
  CHECK(suspension.leave(7 * kMiB, arenaOf(3 * kMiB)) == "its arena is smaller than 22 MiB");
  CHECK(out() == 14);
  CHECK(session.swap.lacking(7 * kMiB) == 5 * kMiB);
  CHECK(suspension.leave(7 * kMiB, arenaOf(13 * kMiB)).empty());
  CHECK(out() == 22);
  CHECK(suspension.leave(kAll, OwnedFile()).empty());
  CHECK(out() == 30);
  CHECK(suspension.enter(kMiB).empty());
  CHECK(out() == 30);
  CHECK(suspension.enter(17 * kMiB).empty());
  CHECK(out() == 14);
  CHECK(session.swap.lacking(kAll) == 0);
  CHECK(suspension.leave(3 * kMiB, OwnedFile()).empty());
  CHECK(out() == 22);
  CHECK(suspension.drop() == "its GPU memory is in the arena");
  CHECK(suspension.resume().empty());
  CHECK(freeBytes() == before);
  for (std::uint32_t i = 0; i < each.size(); ++i) {
    const std::uint32_t mib = 2 * i + 2;
    CHECK(has(each[i], mib * kMiB, mib));
    free(each[i]);
  }
}

TEST_CASE_FIXTURE(Swapping, "an arena is kept, extended and given up") {
  const CUdeviceptr memory = allocate(4 * kMiB);
  fill(memory, 4 * kMiB, 1);
  CHECK(suspension.leave(kAll, arenaOf(kMiB)) == "it is not suspended");
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.leave(kAll, OwnedFile()) == "its arena is smaller than 4 MiB");
  CHECK(suspension.leave(kAll, arenaOf(2 * kMiB)) == "its arena is smaller than 4 MiB");
  CHECK(suspension.drop().empty());
  const OwnedFile unsealed(worker::test::memoryFile({}, 4 * kMiB, 0));
  CHECK(suspension.leave(kAll, OwnedFile(dup(unsealed.get()))) == "its arena cannot be mapped");
  CHECK(suspension.leave(kAll, arenaOf(4 * kMiB)).empty());
  CHECK(suspension.resume().empty());
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.leave(kAll, OwnedFile()).empty());
  CHECK(suspension.resume().empty());
  CHECK(suspension.drop().empty());
  CHECK(suspension.drop().empty());
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.leave(kAll, OwnedFile()) == "its arena is smaller than 4 MiB");
  CHECK(suspension.leave(kAll, arenaOf(8 * kMiB)).empty());
  CHECK(suspension.resume().empty());
  CHECK(has(memory, 4 * kMiB, 1));
  free(memory);
}

TEST_CASE_FIXTURE(Swapping, "an arena outlives the context that it was registered with") {
  const auto made = frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
  const CUdeviceptr memory = allocate(2 * kMiB);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.leave(kAll, arenaOf(4 * kMiB)).empty());
  CHECK(suspension.resume().empty());
  free(memory);
  for (const std::uint64_t ended : {made.handle, context})
    CHECK(frames.call(CallNumber::cuCtxDestroy_v2, ended).status == CUDA_SUCCESS);
  const auto handle = create(2 * kMiB);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.whyStays() == "it has no context in which its GPU memory can be read");
  CHECK(suspension.resume().empty());
  CHECK(driver.cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(session.swap.bytes() == 0);
  CHECK(suspension.leave(kAll, OwnedFile()).empty());
  CHECK(suspension.resume().empty());
  context = frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0}).handle;
  const CUdeviceptr later = allocate(4 * kMiB);
  fill(later, 4 * kMiB, 1);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.leave(kAll, OwnedFile()).empty());
  CHECK(suspension.resume().empty());
  CHECK(has(later, 4 * kMiB, 1));
  free(later);
}

TEST_CASE_FIXTURE(Swapping, "memory that other processes may have cannot leave") {
  const CUdeviceptr memory = allocate(2 * kMiB);
  int file = -1;
  worker::MovableMemory::Geometry geometry;
  CHECK(session.memory.exportFile(memory, &file, &geometry) == CUDA_SUCCESS);
  const OwnedFile exported(file);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.whyStays() == "it shares GPU memory with other processes");
  CHECK(suspension.leave(kAll, arenaOf(2 * kMiB)) == "it shares GPU memory with other processes");
  CHECK(suspension.resume().empty());
  free(memory);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.resume().empty());

  const auto handle = create(2 * kMiB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CHECK(driver.cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                            0) == CUDA_SUCCESS);
  const OwnedFile second(file);
  CHECK(driver.cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.resume().empty());
  CUmemGenericAllocationHandle imported = 0;
  CHECK(driver.cuMemImportFromShareableHandle(
            &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)),
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.whyStays() == "it shares GPU memory with other processes");
  CHECK(suspension.resume().empty());
  CHECK(driver.cuMemRelease(imported) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Swapping, "a session that must keep its memory is suspended with it") {
  session.swap.forbid("it is not to");
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.whyStays().empty());
  CHECK(suspension.resume().empty());
  const CUdeviceptr memory = allocate(100);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(suspension.whyStays() == "it is not to");
  CHECK(suspension.leave(kAll, arenaOf(2 * kMiB)) == "it is not to");
  CHECK(suspension.resume().empty());
  free(memory);
}

TEST_CASE_FIXTURE(Swapping, "memory that was freed behind work is gone before the rest leaves") {
  CUstream stream = nullptr;
  CHECK(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const CUdeviceptr freed = allocate(4 * kMiB), kept = allocate(2 * kMiB);
  fill(kept, 2 * kMiB, 1);
  const auto charge = quota.take(freed);
  REQUIRE(charge);
  CHECK(session.pendingFrees.add(driver, stream, freed, *charge) == CUDA_SUCCESS);
  CHECK(suspension.suspend(kLong).empty());
  CHECK(session.swap.bytes() == 2 * kMiB);
  CHECK(suspension.leave(kAll, arenaOf(2 * kMiB)).empty());
  CHECK(suspension.resume().empty());
  CHECK(has(kept, 2 * kMiB, 1));
  CHECK(quota.used() == 2 * kMiB);
  free(kept);
  CHECK(driver.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
}

namespace {

/// Fails the one of some of the driver's calls that `countdown` comes to.
int countdown = 0;
bool failsNow() { return countdown > 0 && --countdown == 0; }

template <auto Function>
std::remove_reference_t<decltype(std::declval<worker::Driver&>().*Function)> original = nullptr;

template <auto Function>
void mayFail(worker::Driver& driver) {
  original<Function> = driver.*Function;
  driver.*Function = [](auto... arguments) -> CUresult {
    return failsNow() ? CUDA_ERROR_UNKNOWN : original<Function>(arguments...);
  };
}

}  // namespace

TEST_CASE_FIXTURE(Swapping, "whichever call of the driver fails, no byte is lost") {
  mayFail<&worker::Driver::cuMemCreate>(below);
  mayFail<&worker::Driver::cuMemMap>(below);
  mayFail<&worker::Driver::cuMemSetAccess>(below);
  mayFail<&worker::Driver::cuMemAddressReserve>(below);
  mayFail<&worker::Driver::cuMemcpyDtoHAsync_v2>(below);
  mayFail<&worker::Driver::cuMemcpyHtoDAsync_v2>(below);
  mayFail<&worker::Driver::cuMemHostRegister_v2>(below);
  mayFail<&worker::Driver::cuMemHostUnregister>(below);
  mayFail<&worker::Driver::cuStreamCreate>(below);
  original<& worker::Driver::cuCtxSynchronize> = below.cuCtxSynchronize;
  below.cuCtxSynchronize = [] {
    const CUresult status = original<&worker::Driver::cuCtxSynchronize>();
    return failsNow() ? CUDA_ERROR_UNKNOWN : status;
  };
  const CUdeviceptr small = allocate(4096), large = allocate(4 * kMiB), mapped = mapNew(2 * kMiB);
  const auto unmapped = create(2 * kMiB);
  const CUdeviceptr at = reserve(2 * kMiB);
  map(at, 2 * kMiB, unmapped);
  CHECK(allow(at, 2 * kMiB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  fill(at, 2 * kMiB, 4);
  CHECK(driver.cuMemUnmap(at, 2 * kMiB) == CUDA_SUCCESS);
  fill(small, 4096, 1), fill(large, 4 * kMiB, 2), fill(mapped, 2 * kMiB, 3);
  const std::uint64_t before = freeBytes();
  int failures = 0;
  for (int n = 1; n < 100; ++n) {
    CHECK(suspension.suspend(kLong).empty());
    countdown = n;
    const bool done = suspension.leave(3 * kMiB, arenaOf(5 * kMiB)).empty() &&
                      suspension.leave(kAll, arenaOf(5 * kMiB)).empty() &&
                      suspension.enter(5 * kMiB).empty() && suspension.resume().empty() &&
                      session.swap.drop().empty();
    const bool failed = countdown == 0;
    countdown = 0;
    failures += failed ? 1 : 0;
    CHECK(done == !failed);
    CHECK(freeBytes() == before + session.swap.outBytes());
    CHECK(suspension.resume().empty());
    CHECK(suspension.drop().empty());
    CHECK(freeBytes() == before);
  }
  CHECK(failures > 20);
  CHECK(has(small, 4096, 1));
  CHECK(has(large, 4 * kMiB, 2));
  CHECK(has(mapped, 2 * kMiB, 3));
  map(at, 2 * kMiB, unmapped);
  CHECK(allow(at, 2 * kMiB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  CHECK(has(at, 2 * kMiB, 4));
  unmap(at, 2 * kMiB), unmap(mapped, 2 * kMiB);
  CHECK(driver.cuMemRelease(unmapped) == CUDA_SUCCESS);
  free(small), free(large);
}
