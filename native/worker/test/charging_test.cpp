// Every call that cuda-api/ marks as allocating, with a driver that checks: when the driver has
// taken memory, the quota has been charged for it. A marked call that has no invocation here fails
// the test.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>

#include "call_facts.h"
#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"
#include "wire/launch.h"

namespace {

using worker::test::kMiB;

constexpr std::uint64_t kLimit = 3072 * kMiB;
constexpr std::uint64_t kStreamMemory = 550 << 10;  ///< about what an H200 takes

worker::Driver real{};
CUcontext observer = nullptr;  ///< to query the device's memory; the worker does not know it
std::uint64_t contextMemory = 0;

std::uint64_t freeMemory() {
  std::size_t free = 0, total = 0;
  CUcontext popped = nullptr;
  real.cuCtxPushCurrent_v2(observer);
  CHECK(real.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS);
  real.cuCtxPopCurrent_v2(&popped);
  return free;
}

/// Loads the driver, and measures the memory of a context.
void loadDriver() {
  static const bool loaded = [] {
    const char* path = unit::argument(0, "the path of the simulated driver");
    REQUIRE(worker::load(dlopen(path, RTLD_NOW | RTLD_LOCAL), real));
    REQUIRE(real.cuInit(0) == CUDA_SUCCESS);
    CUcontext first = nullptr, popped = nullptr;
    REQUIRE(real.cuCtxCreate_v2(&observer, 0, 0) == CUDA_SUCCESS);
    // The bytes that the worker takes in each context share a page of the simulated GPU.
    CUdeviceptr page = 0;
    REQUIRE(real.cuMemAlloc_v2(&page, 1) == CUDA_SUCCESS);
    real.cuCtxPopCurrent_v2(&popped);
    const std::uint64_t before = freeMemory();
    REQUIRE(real.cuCtxCreate_v2(&first, 0, 0) == CUDA_SUCCESS);
    contextMemory = before - freeMemory();
    real.cuCtxDestroy_v2(first);
    return true;
  }();
  CHECK(loaded);
}

/// What happened in the driver since the call under test began.
struct Watch {
  const worker::Session& session;
  std::uint64_t freeBefore = freeMemory();
  std::uint64_t usedBefore = session.quota.used();
  std::uint64_t pinnedBefore = session.figures.pinned.load();
  std::uint64_t modelled = 0;  ///< bytes of the device that only a real GPU takes
  std::uint64_t registered = 0;
  std::uint64_t most = 0;
  int uncharged = 0;
  bool expected = false;  ///< whether the driver is to hold more than is charged
  bool reserves = false;  ///< whether the call under test takes page tables that are charged

  void look(const char* function) {
    const std::uint64_t now = freeMemory();
    const std::uint64_t device = modelled + (freeBefore > now ? freeBefore - now : 0);
    const std::uint64_t charged = session.quota.used() - std::min(usedBefore, session.quota.used());
    const std::uint64_t pinned = session.figures.pinned.load() - pinnedBefore;
    most = std::max(most, device + registered);
    if (device <= charged && registered <= pinned) return;
    if (++uncharged == 1 && !expected) {
      std::fprintf(stderr,
                   "%s: the driver holds %zu bytes of the device and %zu of the host, %zu and %zu "
                   "are charged\n",
                   function, std::size_t{device}, std::size_t{registered}, std::size_t{charged},
                   std::size_t{pinned});
    }
  }
};

Watch* watch = nullptr;

std::uint64_t residentThreads() {
  int threads = 0, multiprocessors = 0;
  real.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0);
  real.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  return static_cast<std::uint64_t>(threads) * static_cast<std::uint64_t>(multiprocessors);
}

std::uint64_t localMemory(CUfunction function) {
  int bytes = 0;
  real.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
  return bytes > 1024 ? static_cast<std::uint64_t>(bytes - 1024) * residentThreads() : 0;
}

/// Beyond the default, as an H200 took it (driver 580.159, 2026-11-23).
std::uint64_t pendingLaunchMemory(std::size_t count) {
  const std::map<std::size_t, std::uint64_t> measured{
      {2048, 0}, {2049, 4194304}, {65536, 595591168}};
  return measured.at(count);
}

/// Adds what a real GPU takes for a successful call, and the simulated one does not. `before`: the
/// old value of a limit that is set.
template <class Arguments>
void model(std::string_view function, const Arguments& arguments, std::size_t before) {
  if (function == "cuStreamCreate" || function == "cuStreamCreateWithPriority" ||
      function == "cuGreenCtxStreamCreate")
    watch->modelled += kStreamMemory;
  if constexpr (std::is_same_v<Arguments, std::tuple<CUlimit, std::size_t>>) {
    const auto [limit, value] = arguments;
    const std::uint64_t more = value > before ? value - before : 0;
    if (limit == CU_LIMIT_STACK_SIZE) watch->modelled += more * residentThreads();
    if (limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT)
      watch->modelled += pendingLaunchMemory(value);
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE)
      watch->modelled += more;
  }
  if constexpr (std::tuple_size_v<Arguments> == 11) {
    if constexpr (std::is_same_v<std::tuple_element_t<0, Arguments>, CUfunction>)
      watch->modelled += localMemory(std::get<0>(arguments));
  }
  if constexpr (std::is_same_v<Arguments,
                               std::tuple<const CUlaunchConfig*, CUfunction, void**, void**>>)
    watch->modelled += localMemory(std::get<1>(arguments));
  if constexpr (std::is_same_v<Arguments, std::tuple<CUDA_LAUNCH_PARAMS*, unsigned, unsigned>>)
    watch->modelled += localMemory(std::get<0>(arguments)->function);
  if constexpr (std::is_same_v<Arguments, std::tuple<void*, std::size_t, unsigned>>)
    watch->registered += std::get<1>(arguments);
  if (function == "cuMemAddressReserve" && watch->reserves) watch->modelled += 4096;
}

template <auto Member>
struct Checked;

/// One function of the driver's table. It looks after the real function, and before the worker
/// knows that it has returned.
template <class R, class... A, R (*worker::Driver::*Member)(A...)>
struct Checked<Member> {
  static inline const char* name = nullptr;
  static R call(A... arguments) {
    std::size_t before = 0;
    if constexpr (std::is_same_v<std::tuple<A...>, std::tuple<CUlimit, std::size_t>>)
      real.cuCtxGetLimit(&before, std::get<0>(std::tuple<A...>(arguments...)));
    const R result = (real.*Member)(arguments...);
    if (watch == nullptr) return result;
    if constexpr (std::is_same_v<R, CUresult>) {
      if (result == CUDA_SUCCESS) model(name, std::tuple<A...>(arguments...), before);
    }
    watch->look(name);
    return result;
  }
};

void check(worker::Driver& driver) {
  worker::forEachFunction([&]<auto Member>(const char* name) {
    if (real.*Member == nullptr) return;
    Checked<Member>::name = name;
    driver.*Member = Checked<Member>::call;
  });
}

/// A session with one context and with code that uses up what the node provides for contexts and
/// code.
struct Fixture {
  worker::Report report{-1};
  worker::Quota quota;
  worker::Figures figures;
  worker::Output output;
  std::unique_ptr<worker::Session> session;
  std::unique_ptr<worker::test::Frames> frames;
  std::uint64_t context = 0;
  std::uint64_t module = 0;

  Fixture() {
    loadDriver();
    const std::string path = worker::test::makeQuotaFile(kLimit);
    CHECK(quota.open(path, 0, kLimit).empty());
    unlink(path.c_str());
    worker::Limits limits{};
    limits.contextMemory = contextMemory;
    limits.streamMemory = kStreamMemory;
    session = std::make_unique<worker::Session>(-1, report, quota, figures, output, limits);
    check(session->driver);
    session->memory.install(session->driver, false);
    frames = std::make_unique<worker::test::Frames>(*session);
    context = give(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
    CHECK(quota.used() == 0);
    give(CallNumber::cuMemAlloc_v2, std::size_t{1});  // so that small requests need no new page
    module = load(CallNumber::cuModuleLoadDataEx, 1);
  }
  ~Fixture() {
    CHECK(frames->call(CallNumber::cuCtxDestroy_v2, context).status == CUDA_SUCCESS);
    frames->call(CallNumber::cuDevicePrimaryCtxReset_v2, CUdevice{0});
  }

  template <class... T>
  std::uint64_t give(CallNumber number, T... arguments) {
    const worker::test::Reply reply = frames->call(number, arguments...);
    CAPTURE(std::string(kCallNames[static_cast<int>(number)]));
    CHECK(reply.status == CUDA_SUCCESS);
    return reply.handle;
  }

  std::uint64_t load(CallNumber number, std::uint64_t id) {
    const worker::test::Reply reply = worker::test::load(*frames, *session, number, id, kCode);
    CHECK(reply.status == CUDA_SUCCESS);
    return reply.handle;
  }

  std::uint64_t kernel() {
    CUmodule object = nullptr;
    CUfunction function = nullptr;
    CHECK(frames->thread.find<CUmodule>(module, &object) == CUDA_SUCCESS);
    CHECK(real.cuModuleGetFunction(&function, object, "deep") == CUDA_SUCCESS);
    return frames->thread.add(wire::HandleKind::function, function, module);
  }

  /// More than a session's first 8 MiB of code, and a kernel with much local memory.
  static constexpr const char* kCode = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 8 .b8 variable[16777216];
.visible .entry deep(.param .u64 out) {
  .local .align 8 .b8 depot[4096];
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 7;
  st.local.u64 [depot+4088], %rd1;
  ret;
}
)";
};

wire::LaunchFrame launchFrame(std::uint64_t kernel) {
  return {kernel, 0, {1, 1, 1}, {1, 1, 1}, 0, 8};
}

using Invocation = std::function<void(Fixture&)>;

void allocateFromPool(Fixture& test) {
  const std::uint64_t pool = test.give(CallNumber::cuMemPoolCreate, worker::test::devicePool());
  test.give(CallNumber::cuMemAllocFromPoolAsync, std::size_t{kMiB}, pool, std::uint64_t{0});
}

void launch(Fixture& test, CallNumber number) {
  const wire::LaunchFrame frame = launchFrame(test.kernel());
  const bool attributes = number == CallNumber::cuLaunchKernelEx;
  const auto reply = test.frames->send(number, [&](wire::Encoder& out) {
    out.put(frame);
    out.put<std::uint64_t>(0);  // its parameter
    if (attributes) out.putBytes(nullptr, 0);
  });
  CHECK(reply.status == CUDA_SUCCESS);
  CHECK(real.cuCtxSynchronize() == CUDA_SUCCESS);
}

void launchOnOneGpu(Fixture& test) {
  wire::LaunchFrame frame = launchFrame(test.kernel());
  frame.stream = test.give(CallNumber::cuStreamCreate, 0u);
  const auto reply =
      test.frames->send(CallNumber::cuLaunchCooperativeKernelMultiDevice, [&](wire::Encoder& out) {
        out.put(frame);
        out.put<std::uint64_t>(0);  // its parameter
        out.put(0u);
      });
  CHECK(reply.status == CUDA_SUCCESS);
  CHECK(real.cuCtxSynchronize() == CUDA_SUCCESS);
}

std::uint64_t describeWhole(Fixture& test) {
  CUdevResource whole{};
  CHECK(real.cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
  test.frames->call(CallNumber::cuDeviceGetDevResource, CUdevice{0}, CU_DEV_RESOURCE_TYPE_SM);
  const auto reply =
      test.frames->send(CallNumber::cuDevResourceGenerateDesc,
                        [&](wire::Encoder& out) { out.putBytes(&whole, sizeof whole); });
  CHECK(reply.status == CUDA_SUCCESS);
  return reply.handle;
}

std::uint64_t makeGreen(Fixture& test) {
  return test.give(CallNumber::cuGreenCtxCreate, describeWhole(test), CUdevice{0},
                   unsigned{CU_GREEN_CTX_DEFAULT_STREAM});
}

void allocateHost(Fixture& test) {
  const std::uint64_t bytes = 4 * kMiB;
  const auto address = reinterpret_cast<std::uint64_t>(
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  test.session->shared.window = {address, address + bytes};
  test.session->shared.put(7, worker::test::memoryFile("", bytes, F_SEAL_SHRINK));
  test.give(CallNumber::cuMemHostAlloc, std::uint64_t{7}, address, bytes, 0u);
  watch = nullptr;
  test.give(CallNumber::cuMemFreeHost, address);
  munmap(reinterpret_cast<void*>(address), bytes);
}

void useManaged(Fixture& test) {
  constexpr std::uint64_t kBytes = 4 * kMiB;
  constexpr wire::AddressRange kWindow{0x5502'0000'0000, 0x5502'1000'0000};
  CHECK(wire::reserve(kWindow));
  test.session->shared.window = kWindow;
  test.session->shared.put(9, worker::test::memoryFile("", kBytes, F_SEAL_SHRINK));
  test.give(CallNumber::allocateManaged, std::uint64_t{9}, kWindow.begin, kBytes);
  const std::uint64_t place = test.give(CallNumber::placeManaged, kWindow.begin, 0u);
  CHECK(static_cast<std::uint32_t>(place) == static_cast<std::uint32_t>(wire::ManagedPlace::gpu));
  watch = nullptr;
  test.give(CallNumber::freeManaged, kWindow.begin);
  munmap(reinterpret_cast<void*>(kWindow.begin), kWindow.end - kWindow.begin);
}

/// One page of a memory file, at an address that is free.
void registerHost(Fixture& test) {
  constexpr std::uint64_t kAddress = 0x5100'0000'0000;
  constexpr std::uint64_t kBytes = 4096;
  test.session->shared.put(8, worker::test::memoryFile("", kBytes, F_SEAL_SHRINK));
  const worker::SharedMemory::Piece piece{8, kAddress, kBytes, 0};
  const auto reply = test.frames->send(CallNumber::cuMemHostRegister_v2, [&](auto& frame) {
    frame.put(kAddress);
    frame.put(kBytes);
    frame.put(0u);
    frame.putBytes(&piece, sizeof piece);
  });
  CHECK(reply.status == CUDA_SUCCESS);
  watch = nullptr;
  test.give(CallNumber::cuMemHostUnregister, kAddress);
}

/// The memory of a node is taken at the latest when the graph is launched.
void launchMemoryNode(Fixture& test) {
  const std::uint64_t graph = test.give(CallNumber::cuGraphCreate, 0u);
  const auto node = worker::test::addNode(*test.frames, graph, worker::test::memoryNode(5 * kMiB));
  CHECK(node.status == CUDA_SUCCESS);
  const std::uint64_t exec =
      test.give(CallNumber::cuGraphInstantiateWithParams, graph, cuuint64_t{0}, std::uint64_t{0});
  test.give(CallNumber::cuGraphLaunch, exec, std::uint64_t{0});
  test.give(CallNumber::cuCtxSynchronize);
  test.give(CallNumber::cuMemFreeAsync, node.second, std::uint64_t{0});
  test.give(CallNumber::cuCtxSynchronize);
  test.give(CallNumber::cuGraphExecDestroy, exec);
  test.give(CallNumber::cuDeviceGraphMemTrim, CUdevice{0});
}

CUDA_ARRAY3D_DESCRIPTOR box(unsigned flags) { return {100, 90, 33, CU_AD_FORMAT_FLOAT, 2, flags}; }

std::map<CallNumber, Invocation> invocations() {
  using enum CallNumber;
  const auto streams = [](CallNumber number, auto... arguments) {
    return [=](Fixture& test) {
      for (int i = 0; i < 3; ++i) test.give(number, arguments...);
    };
  };
  const auto one = [](CallNumber number, auto... arguments) {
    return [=](Fixture& test) { test.give(number, arguments...); };
  };
  return {
      {cuCtxCreate_v4, one(cuCtxCreate_v4, 0u, CUdevice{0})},
      {cuDevicePrimaryCtxRetain, one(cuDevicePrimaryCtxRetain, CUdevice{0})},
      {cuCtxSetLimit,
       [](Fixture& test) {
         test.give(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, std::size_t{4096});
         test.give(cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{64 * kMiB});
         test.give(cuCtxSetLimit, CU_LIMIT_PRINTF_FIFO_SIZE, std::size_t{64 * kMiB});
         test.give(cuCtxSetLimit, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, std::size_t{65536});
       }},
      {cuStreamCreate, streams(cuStreamCreate, 1u)},
      {cuStreamCreateWithPriority, streams(cuStreamCreateWithPriority, 1u, 0)},
      {cuMemAlloc_v2, one(cuMemAlloc_v2, std::size_t{5 * kMiB})},
      {cuMemAllocPitch_v2, one(cuMemAllocPitch_v2, std::size_t{1000}, std::size_t{10'000}, 4u)},
      {cuMemAllocAsync, one(cuMemAllocAsync, std::size_t{kMiB}, std::uint64_t{0})},
      {cuMemAllocFromPoolAsync, allocateFromPool},
      {cuArrayCreate_v2,
       one(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR{1000, 1000, CU_AD_FORMAT_UNSIGNED_INT8, 4})},
      {cuArray3DCreate_v2, one(cuArray3DCreate_v2, box(0))},
      {cuMipmappedArrayCreate, one(cuMipmappedArrayCreate, box(CUDA_ARRAY3D_LAYERED), 7u)},
      {cuMemCreate, one(cuMemCreate, std::size_t{4 * kMiB}, worker::test::deviceMemory(), 0ull)},
      {cuMemAddressReserve,
       one(cuMemAddressReserve, std::size_t{4 * kMiB}, std::size_t{0}, CUdeviceptr{0}, 0ull)},
      {cuModuleLoadDataEx, [](Fixture& test) { test.load(cuModuleLoadDataEx, 2); }},
      {cuLibraryLoadData,
       [](Fixture& test) {
         const std::uint64_t library = test.load(cuLibraryLoadData, 2);
         const auto named = [&](wire::Encoder& frame) {
           frame.put(library), frame.putBytes("variable", 9);
         };
         CHECK(test.frames->send(cuLibraryGetGlobal, named).status == CUDA_SUCCESS);
       }},
      {cuLaunchKernel, [](Fixture& test) { launch(test, cuLaunchKernel); }},
      {cuLaunchKernelEx, [](Fixture& test) { launch(test, cuLaunchKernelEx); }},
      {cuLaunchCooperativeKernel, [](Fixture& test) { launch(test, cuLaunchCooperativeKernel); }},
      {cuLaunchCooperativeKernelMultiDevice, launchOnOneGpu},
      {cuGreenCtxCreate, [](Fixture& test) { makeGreen(test); }},
      {cuGreenCtxStreamCreate,
       [](Fixture& test) {
         const std::uint64_t green = makeGreen(test);
         for (int i = 0; i < 3; ++i)
           test.give(cuGreenCtxStreamCreate, green, unsigned{CU_STREAM_NON_BLOCKING}, 0);
       }},
      {cuGraphInstantiateWithParams, launchMemoryNode},
      {cuMemHostAlloc, allocateHost},
      {cuMemHostRegister_v2, registerHost},
      {CallNumber::allocateManaged, useManaged},
      {CallNumber::placeManaged, useManaged},
  };
}

TEST_CASE("every allocating call charges the quota before it calls the driver") {
  const auto known = invocations();
  for (std::size_t number = 1; number <= kCallCount; ++number) {
    const auto found = known.find(static_cast<CallNumber>(number));
    const bool allocates = kCallFacts[number].allocates != Allocates::nothing;
    CAPTURE(std::string(kCallNames[number]));
    const bool isTried = found != known.end();
    CHECK(isTried == allocates);
    if (!allocates || found == known.end()) continue;
    Fixture test;
    Watch seen{*test.session};
    seen.reserves = found->first == CallNumber::cuMemAddressReserve;
    watch = &seen;
    found->second(test);
    watch = nullptr;
    CHECK(seen.uncharged == 0);
    CHECK(seen.most > 0);
  }
}

// Bytes beyond the default (driver 580.159, 2026-11-23). The simulated GPU has as many threads.
TEST_CASE("stack limits are charged by what an H200 takes") {
  Fixture test;
  const std::uint64_t before = test.quota.used();
  const std::pair<std::size_t, std::uint64_t> measured[] = {{1024, 0},         {1025, 4194304},
                                                            {1041, 8388608},   {2000, 264241152},
                                                            {2001, 268435456}, {4096, 830472192}};
  for (const auto& [value, bytes] : measured) {
    test.give(CallNumber::cuCtxSetLimit, CU_LIMIT_STACK_SIZE, value);
    const std::uint64_t charged = test.quota.used() - before;
    CHECK(charged >= bytes);
    CHECK(charged <= bytes + 2 * kMiB);
  }
}

// The driver keeps the memory of a stream until its work has ended.
TEST_CASE("a destroyed stream stays charged while it waits for a word") {
  Fixture test;
  const std::uint64_t word = test.give(CallNumber::cuMemAlloc_v2, std::size_t{4});
  test.give(CallNumber::cuMemsetD32Async, word, 0u, std::size_t{1}, std::uint64_t{0});
  CHECK(real.cuCtxSynchronize() == CUDA_SUCCESS);
  const std::uint64_t before = test.quota.used();
  const std::uint64_t other = test.give(CallNumber::cuStreamCreate, 1u);
  for (std::uint64_t i = 1; i <= 2; ++i) {
    const std::uint64_t stream = test.give(CallNumber::cuStreamCreate, 1u);
    test.give(CallNumber::cuStreamWaitValue32_v2, stream, word, 5u,
              unsigned{CU_STREAM_WAIT_VALUE_EQ});
    test.give(CallNumber::cuStreamDestroy_v2, stream);
    CHECK(test.frames->call(CallNumber::cuStreamQuery, stream).status == CUDA_ERROR_INVALID_HANDLE);
    CHECK(test.quota.used() == before + (1 + i) * kStreamMemory);
  }
  test.give(CallNumber::cuStreamWriteValue32_v2, other, word, 5u, 0u);
  CHECK(real.cuCtxSynchronize() == CUDA_SUCCESS);
  for (int i = 0; i < 2; ++i) test.give(CallNumber::cuStreamCreate, 1u);
  CHECK(test.quota.used() == before + 3 * kStreamMemory);
}

CUcontext contextOfStreams = nullptr;

// A kernel of a library runs in the context of its stream, which need not be the current one. The
// simulated driver tells nothing of streams of other contexts.
TEST_CASE("local memory is charged to the context of the stream") {
  Fixture test;
  test.give(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
  const std::uint64_t stream = test.give(CallNumber::cuStreamCreate, 1u);
  CHECK(real.cuCtxGetCurrent(&contextOfStreams) == CUDA_SUCCESS);
  test.session->driver.cuStreamGetCtx = [](CUstream, CUcontext* context) {
    return *context = contextOfStreams, CUDA_SUCCESS;
  };
  test.give(CallNumber::cuCtxSetCurrent, test.context);
  wire::LaunchFrame frame = launchFrame(test.kernel());
  const auto launchInto = [&](std::uint64_t into) {
    frame.stream = into;
    test.frames->send(CallNumber::cuLaunchKernel,
                      [&](wire::Encoder& out) { out.put(frame), out.put<std::uint64_t>(0); });
  };
  const std::uint64_t before = test.quota.used();
  launchInto(0);
  const std::uint64_t once = test.quota.used() - before;
  launchInto(0);
  CHECK(once > 0);
  CHECK(test.quota.used() == before + once);
  launchInto(stream);
  CHECK(test.quota.used() == before + 2 * once);
}

TEST_CASE("a thread without a current context launches into a stream, and is charged") {
  Fixture test;
  wire::LaunchFrame frame = launchFrame(test.kernel());
  frame.stream = test.give(CallNumber::cuStreamCreate, 1u);
  test.give(CallNumber::cuCtxSetCurrent, std::uint64_t{0});
  test.give(CallNumber::describeKernel, frame.function);
  const std::uint64_t before = test.quota.used();
  const auto reply = test.frames->send(CallNumber::cuLaunchKernel, [&](wire::Encoder& out) {
    out.put(frame), out.put<std::uint64_t>(0);
  });
  CHECK(reply.status == CUDA_SUCCESS);
  CHECK(test.quota.used() > before);
  CUcontext current = nullptr;
  CHECK(real.cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == nullptr);
  test.give(CallNumber::cuCtxSetCurrent, test.context);
  CHECK(real.cuCtxSynchronize() == CUDA_SUCCESS);
}

// A test of the check itself.
TEST_CASE("memory that is not charged is noticed") {
  Fixture test;
  Watch seen{*test.session};
  seen.expected = true;
  watch = &seen;
  CUdeviceptr memory = 0;
  CHECK(test.session->driver.cuMemAlloc_v2(&memory, 2 * kMiB) == CUDA_SUCCESS);
  CHECK(seen.uncharged > 0);
  watch = nullptr;
  CHECK(test.session->driver.cuMemFree_v2(memory) == CUDA_SUCCESS);
}

TEST_CASE("a call beyond the quota does not reach the driver") {
  Fixture test;
  CHECK(test.quota.charge(kLimit - test.quota.used() - kMiB));
  Watch seen{*test.session};
  watch = &seen;
  CHECK(test.frames->call(CallNumber::cuMemAllocPitch_v2, std::size_t{1}, std::size_t{4096}, 4u)
            .status == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(test.frames->call(CallNumber::cuMemAllocPitch_v2, ~std::size_t{0}, ~std::size_t{0}, 4u)
            .status == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(test.frames->call(CallNumber::cuMemAllocAsync, std::size_t{1}, std::uint64_t{0}).status ==
        CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(seen.most == 0);
  CHECK(test.quota.used() == kLimit - kMiB);
  watch = nullptr;
  CHECK(test.frames->call(CallNumber::cuMemAllocPitch_v2, std::size_t{1}, std::size_t{2048}, 4u)
            .status == CUDA_SUCCESS);
  CHECK(test.quota.used() == kLimit);
}

TEST_CASE("the memory of an executable graph is charged before it is made, returned with it") {
  Fixture test;
  const std::uint64_t before = test.quota.used();
  const std::uint64_t graph = test.give(CallNumber::cuGraphCreate, 0u);
  CHECK(worker::test::addNode(*test.frames, graph, worker::test::memoryNode(64 * kMiB)).status ==
        CUDA_SUCCESS);
  CHECK(test.quota.used() == before);
  const std::uint64_t exec =
      test.give(CallNumber::cuGraphInstantiateWithParams, graph, cuuint64_t{0}, std::uint64_t{0});
  CHECK(test.quota.used() == before + 64 * kMiB);
  test.give(CallNumber::cuGraphExecDestroy, exec);
  CHECK(test.quota.used() == before);
  CHECK(test.quota.charge(kLimit - before - 32 * kMiB));
  CHECK(test.frames
            ->call(CallNumber::cuGraphInstantiateWithParams, graph, cuuint64_t{0}, std::uint64_t{0})
            .status == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(test.quota.used() == kLimit - 32 * kMiB);
}

/// The simulated driver has no graphs that kernels launch.
CUresult withDeviceLaunch(CUgraphExec, cuuint64_t* flags) {
  *flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
  return CUDA_SUCCESS;
}

TEST_CASE("only graphs that kernels launch show the driver's handle") {
  Fixture test;
  const std::uint64_t graph = test.give(CallNumber::cuGraphCreate, 0u);
  const std::uint64_t exec =
      test.give(CallNumber::cuGraphInstantiateWithParams, graph, cuuint64_t{0}, std::uint64_t{0});
  const auto shown = [&] {
    const auto facts = test.frames->call(CallNumber::graphExecFacts, exec);
    CHECK(facts.status == CUDA_SUCCESS);
    return facts.second;
  };
  CHECK(shown() == 0);
  test.session->driver.cuGraphExecGetFlags = withDeviceLaunch;
  void* const object = test.session->handles.find(wire::HandleKind::graphExec, exec);
  CHECK(shown() == reinterpret_cast<std::uint64_t>(object));
}

// Those of the host, and managed ones, would pin the worker's memory.
TEST_CASE("only pools and physical memory of the device are made") {
  Fixture test;
  const auto refused = [&](CallNumber number, auto... arguments) {
    return test.frames->call(number, arguments...).status == CUDA_ERROR_NOT_SUPPORTED;
  };
  Watch seen{*test.session};
  watch = &seen;
  for (const auto type :
       {CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA,
        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, CU_MEM_LOCATION_TYPE_NONE}) {
    for (const auto kind : {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_MANAGED,
                            CU_MEM_ALLOCATION_TYPE_INVALID}) {
      const bool accounted =
          type == CU_MEM_LOCATION_TYPE_DEVICE && kind == CU_MEM_ALLOCATION_TYPE_PINNED;
      CUmemPoolProps pool = worker::test::devicePool();
      CUmemAllocationProp memory = worker::test::deviceMemory();
      pool.location.type = memory.location.type = type;
      pool.allocType = memory.type = kind;
      CHECK(refused(CallNumber::cuMemPoolCreate, pool) == !accounted);
      CHECK(refused(CallNumber::cuMemCreate, std::size_t{2 * kMiB}, memory, 0ull) == !accounted);
      CHECK(refused(CallNumber::cuMemGetDefaultMemPool, pool.location, kind) == !accounted);
      CHECK(refused(CallNumber::cuMemGetMemPool, pool.location, kind) == !accounted);
      const std::uint64_t whole =
          test.frames->call(CallNumber::cuDeviceGetDefaultMemPool, CUdevice{0}).handle;
      CHECK(refused(CallNumber::cuMemSetMemPool, pool.location, kind, whole) == !accounted);
    }
  }
  CUmemPoolProps exported = worker::test::devicePool();
  exported.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  CUmemAllocationProp shared = worker::test::deviceMemory();
  shared.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  CHECK(refused(CallNumber::cuMemPoolCreate, exported));
  CHECK(refused(CallNumber::cuMemCreate, std::size_t{2 * kMiB}, shared, 0ull));
  CHECK(seen.uncharged == 0);
  watch = nullptr;
}

}  // namespace
