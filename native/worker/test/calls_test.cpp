// Bodies of calls before the simulated driver: what they hold is free when it is refunded, and no wait of one thread stops another.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "call_numbers.h"
#include "native/worker/test/quota_file.h"
#include "native/worker/thread.h"
#include "wire/test/check.h"
#include "worker_bodies.h"

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLimit = 128 * kMiB;

void* library = nullptr;

/// A session whose client never calls, with a context that is current here.
struct Fixture {
  worker::Report report{-1};
  worker::Quota quota;
  worker::Figures figures;
  worker::Output output;
  worker::Session session{-1, report, quota, figures, output, {}};
  worker::Thread thread{session, nullptr};
  const worker::Driver& driver = session.driver;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  std::atomic<bool> released{false};

  Fixture() {
    const std::string path = worker::test::makeQuotaFile(kLimit);
    CHECK(quota.open(path, 0, kLimit).empty());
    unlink(path.c_str());
    if (!worker::load(library, session.driver) || driver.cuInit(0) != CUDA_SUCCESS) std::abort();
    CHECK(worker::cuDevicePrimaryCtxRetain(thread, &context, 0) == CUDA_SUCCESS && driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CHECK(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  }
  ~Fixture() { CHECK(worker::cuDevicePrimaryCtxReset_v2(thread, 0) == CUDA_SUCCESS); }

  /// Until release(), the stream goes no further.
  void block() {
    released = false;
    const auto waitForIt = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
    CHECK(driver.cuLaunchHostFunc(stream, waitForIt, &released) == CUDA_SUCCESS);
  }
  void release() {
    released = true;
    released.notify_all();
  }
  void goOn() {
    release();
    CHECK(driver.cuStreamSynchronize(stream) == CUDA_SUCCESS);
  }

  CUmemoryPool makePool() {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemoryPool pool = nullptr;
    CHECK(worker::cuMemPoolCreate(thread, &pool, &properties) == CUDA_SUCCESS);
    return pool;
  }

  /// A frame of the client. The first word of the reply is `answer`.
  template <class... T>
  CUresult call(CallNumber number, T... arguments) {
    std::vector<std::byte> bytes(4096);
    wire::Encoder frame(bytes.data(), bytes.size());
    (frame.put(arguments), ...);
    std::vector<std::byte> replied(wire::kReplyBytes);
    wire::Encoder reply(replied.data(), replied.size());
    wire::Decoder in(bytes.data(), frame.size());
    wire::FrameHeader header{};
    header.call = static_cast<std::uint16_t>(number);
    const CUresult status = worker::dispatch(thread, header, in, reply);
    answer = wire::Decoder(replied.data(), reply.size()).get<std::uint64_t>();
    return status;
  }
  std::uint64_t answer = 0;

  /// On a thread of its own, as for another thread of the client.
  std::thread beside(const std::function<void(worker::Thread&)>& work) {
    return std::thread([this, work] {
      worker::Thread other(session, nullptr);
      CHECK(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
      work(other);
    });
  }
};

/// Memory that a stream is to free counts until it gets there, and is waited for before the program is refused.
void testFreedInStream() {
  Fixture test;
  int refused = 0;
  test.quota.setRefused([&](std::uint64_t) { ++refused; });
  CUdeviceptr memory = 0;
  CHECK(worker::cuMemAlloc_v2(test.thread, &memory, 100 * kMiB) == CUDA_SUCCESS && test.quota.used() == 100 * kMiB);
  test.block();
  CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) == CUDA_SUCCESS && test.quota.used() == 100 * kMiB);
  CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) != CUDA_SUCCESS && test.quota.used() == 100 * kMiB);
  test.goOn();
  CHECK(test.quota.used() == 0);

  CHECK(worker::cuMemAlloc_v2(test.thread, &memory, 100 * kMiB) == CUDA_SUCCESS);
  test.block();
  CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) == CUDA_SUCCESS);
  std::thread waiting = test.beside([](worker::Thread& thread) {
    CUdeviceptr next = 0;
    CHECK(worker::cuMemAlloc_v2(thread, &next, 100 * kMiB) == CUDA_SUCCESS);
  });
  test.release();
  waiting.join();
  CHECK(test.quota.used() == 100 * kMiB && refused == 0);
  CHECK(worker::cuMemAlloc_v2(test.thread, &memory, 1000 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY && refused == 1);
}

/// What a stream is to free goes with the context, once.
void testFreedWithContext() {
  Fixture test;
  CUcontext own = nullptr;
  CUdeviceptr memory = 0;
  CHECK(test.driver.cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(test.session.contexts.make(0, &own, [&] { return test.driver.cuCtxCreate_v2(&own, 0, 0); }) == CUDA_SUCCESS);
  CHECK(worker::cuMemAlloc_v2(test.thread, &memory, 10 * kMiB) == CUDA_SUCCESS);
  CHECK(worker::cuMemFreeAsync(test.thread, memory, nullptr) == CUDA_SUCCESS);
  CHECK(worker::cuCtxDestroy_v2(test.thread, own) == CUDA_SUCCESS && test.quota.used() == 0);
  CHECK(test.driver.cuCtxSetCurrent(test.context) == CUDA_SUCCESS);
}

/// A pool that is destroyed while a stream has yet to free its memory counts until it gets there; neither call waits for that.
void testDestroyedPool() {
  Fixture test;
  for (const bool freedFirst : {true, false}) {
    const CUmemoryPool pool = test.makePool();
    CUmemoryPool now = nullptr;
    CUdeviceptr memory = 0;
    CHECK(test.driver.cuDeviceSetMemPool(0, pool) == CUDA_SUCCESS);
    CHECK(worker::cuMemAllocAsync(test.thread, &memory, 64 * kMiB, test.stream) == CUDA_SUCCESS && test.quota.used() == 64 * kMiB);
    test.block();
    if (freedFirst) CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) == CUDA_SUCCESS);
    CHECK(worker::cuMemPoolDestroy(test.thread, pool) == CUDA_SUCCESS);
    CHECK(test.driver.cuDeviceGetMemPool(&now, 0) == CUDA_SUCCESS && now != pool);
    if (!freedFirst) CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) == CUDA_SUCCESS);
    CHECK(test.session.pools.settle() && test.quota.used() == 64 * kMiB);
    test.goOn();
    cuuint64_t bytes = 0;
    CHECK(test.driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes) == CUDA_SUCCESS && bytes == 0);
    CHECK(!test.session.pools.settle() && test.quota.used() == 0);
    CHECK(test.driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes) != CUDA_SUCCESS);
  }
  CUmemoryPool whole = nullptr;
  CHECK(test.driver.cuDeviceGetDefaultMemPool(&whole, 0) == CUDA_SUCCESS);
  CHECK(worker::cuMemPoolDestroy(test.thread, whole) == CUDA_ERROR_INVALID_VALUE);
}

/// Who waits for memory, or for the work that uses it, stops nobody: what ends the wait may be another thread's call.
void testWaitsAlone() {
  Fixture test;
  CUdeviceptr small = 0;
  CUdeviceptr large = 0;
  CHECK(worker::cuMemAllocAsync(test.thread, &small, kMiB, test.stream) == CUDA_SUCCESS);
  CHECK(worker::cuMemAllocAsync(test.thread, &large, 90 * kMiB, test.stream) == CUDA_SUCCESS && test.quota.used() == 96 * kMiB);
  const auto callsOfOthers = [&] {
    for (int i = 0; i < 100; ++i, usleep(1000)) CHECK(test.session.pools.settle());
  };
  test.block();
  std::thread freeing = test.beside([&](worker::Thread& thread) { CHECK(worker::cuMemFree_v2(thread, small) == CUDA_SUCCESS); });
  callsOfOthers();
  test.release();
  freeing.join();

  test.block();
  CHECK(worker::cuMemFreeAsync(test.thread, large, test.stream) == CUDA_SUCCESS);
  std::thread allocating = test.beside([&](worker::Thread& thread) {
    CUdeviceptr next = 0;
    CHECK(worker::cuMemAllocAsync(thread, &next, 96 * kMiB, nullptr) == CUDA_SUCCESS);
  });
  callsOfOthers();
  test.release();
  allocating.join();
}

/// Host memory that the driver does not let go stays where it is.
void testHostMemoryStays() {
  Fixture test;
  constexpr std::uint64_t kBytes = 4096;
  void* const free = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto address = reinterpret_cast<std::uint64_t>(free);
  test.session.shared.window = {address, address + kBytes};
  const auto allocate = [&](std::uint64_t id) {
    const int file = memfd_create("host", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(ftruncate(file, kBytes) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    test.session.shared.put(id, file);
    CHECK(test.call(CallNumber::cuMemHostAlloc, id, address, kBytes, 0u) == CUDA_SUCCESS);
  };
  allocate(1);
  CHECK(test.driver.cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(test.call(CallNumber::cuMemFreeHost, address) == CUDA_ERROR_INVALID_CONTEXT && test.session.shared.contains(address, kBytes));
  CHECK(test.driver.cuCtxSetCurrent(test.context) == CUDA_SUCCESS);
  CHECK(test.call(CallNumber::cuMemFreeHost, address) == CUDA_SUCCESS && !test.session.shared.contains(address, kBytes));
  CHECK(test.call(CallNumber::cuMemFreeHost, address) == CUDA_ERROR_INVALID_VALUE);
  // Nothing holds what was registered with a context that has ended.
  allocate(2);
  CHECK(test.call(CallNumber::cuDevicePrimaryCtxReset_v2, CUdevice{0}) == CUDA_SUCCESS);
  CHECK(test.driver.cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(test.call(CallNumber::cuMemFreeHost, address) == CUDA_SUCCESS && !test.session.shared.contains(address, kBytes));
}

/// What was made in a context has no handle any more when that has ended, and what was not keeps it.
void testHandlesOfContext() {
  Fixture test;
  const auto make = [&](CallNumber call, auto... arguments) {
    CHECK(test.call(call, arguments...) == CUDA_SUCCESS);
    return test.answer;
  };
  const auto lives = [&](wire::HandleKind kind, std::uint64_t handle) { return test.session.handles.find(kind, handle) != nullptr; };
  const std::uint64_t kept = make(CallNumber::cuEventCreate, 0u);
  for (const bool primary : {false, true}) {
    const std::uint64_t context = primary ? wire::primaryContextHandle(0) : make(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
    const std::uint64_t before = test.session.handles.size();
    const std::uint64_t stream = make(CallNumber::cuStreamCreate, 0u);
    const std::uint64_t event = make(CallNumber::cuEventCreate, 0u);
    CHECK(test.session.handles.size() == before + 2);
    CHECK(primary ? test.call(CallNumber::cuDevicePrimaryCtxReset_v2, CUdevice{0}) == CUDA_SUCCESS
                  : test.call(CallNumber::cuCtxDestroy_v2, context) == CUDA_SUCCESS);
    CHECK(test.call(CallNumber::cuStreamQuery, stream) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(!lives(wire::HandleKind::stream, stream) && !lives(wire::HandleKind::event, event));
    CHECK(lives(wire::HandleKind::event, kept) == !primary);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 2;
  testFreedInStream();
  testFreedWithContext();
  testDestroyedPool();
  testWaitsAlone();
  testHostMemoryStays();
  testHandlesOfContext();
  return wire::test::checkedResult();
}
