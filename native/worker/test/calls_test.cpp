// Bodies of calls with the simulated driver: memory that is refunded is free, and a wait of one
// thread does not stop another.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "call_numbers.h"
#include "native/worker/driver/kernel_calls.h"
#include "native/worker/session/thread.h"
#include "native/worker/test/quota_file.h"
#include "test/unit/program.h"
#include "test/unit/waiting.h"
#include "wire/launch.h"
#include "worker_bodies.h"

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLimit = 128 * kMiB;

/// Another process on the same GPU. Each step takes 48 MiB of it.
class Neighbour {
 public:
  explicit Neighbour(const char* path) {
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0);
    child_ = fork();
    if (child_ == 0) _exit(serve(path));
  }
  ~Neighbour() {
    close(ends_[0]);
    close(ends_[1]);
    waitpid(child_, nullptr, 0);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  void step() const {
    char done = 0;
    CHECK(write(ends_[0], "", 1) == 1);
    CHECK(read(ends_[0], &done, 1) == 1);
    CHECK(done == 1);
  }

 private:
  int serve(const char* path) const {
    close(ends_[0]);
    worker::Driver driver{};
    CUcontext context = nullptr;
    if (!worker::load(dlopen(path, RTLD_NOW | RTLD_LOCAL), driver) ||
        driver.cuInit(0) != CUDA_SUCCESS)
      return 1;
    if (driver.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        driver.cuCtxSetCurrent(context) != CUDA_SUCCESS)
      return 1;
    for (char asked; read(ends_[1], &asked, 1) == 1;) {
      CUdeviceptr memory = 0;
      const char done = driver.cuMemAlloc_v2(&memory, 48 * kMiB) == CUDA_SUCCESS;
      if (write(ends_[1], &done, 1) != 1) return 1;
    }
    return 0;
  }
  int ends_[2] = {-1, -1};
  pid_t child_ = -1;
};

/// Two processes with the simulated GPU: this one and a neighbour.
struct Node {
  const std::string state = "/tmp/worker-calls-" + std::to_string(getpid());
  const Neighbour neighbour{prepare()};
  void* const library = dlopen(driver(), RTLD_NOW | RTLD_LOCAL);
  ~Node() { unlink(state.c_str()); }

 private:
  static const char* driver() { return unit::argument(0, "the path of the simulated driver"); }
  const char* prepare() const {
    setenv("NVIDIA_VIRTUAL_SIMULATED_STATE", state.c_str(), 1);
    CHECK(worker::openHeldMemory(unit::argument(1, "the path of the simulated NVML")).empty());
    return driver();
  }
};
const Node& node() {
  static const Node node;
  return node;
}

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
    if (!worker::load(node().library, session.driver) || driver.cuInit(0) != CUDA_SUCCESS)
      std::abort();
    session.memory.install(session.driver, false);
    CHECK(worker::cuDevicePrimaryCtxRetain(thread, &context, 0) == CUDA_SUCCESS);
    CHECK(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CHECK(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  }
  ~Fixture() { CHECK(worker::cuDevicePrimaryCtxReset_v2(thread, 0) == CUDA_SUCCESS); }

  /// Blocks the stream until release().
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

  /// Executes a frame of the client. `answer` is the first word of the reply.
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
    const CUresult status = thread.execute(header, in, reply);
    answer = wire::Decoder(replied.data(), reply.size()).get<std::uint64_t>();
    return status;
  }
  std::uint64_t answer = 0;

  /// Runs `work` on another thread, as for another thread of the client.
  unit::Waiter beside(const std::function<void(worker::Thread&)>& work) {
    return unit::Waiter([this, work] {
      worker::Thread other(session, nullptr);
      CHECK(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
      work(other);
    });
  }
};

// The program is refused memory only after such frees.
TEST_CASE("memory that a stream is to free is charged until the stream frees it") {
  Fixture test;
  int refused = 0;
  test.quota.setRefused([&](std::uint64_t) { ++refused; });
  CUdeviceptr memory = 0;
  CHECK(worker::cuMemAlloc_v2(test.thread, &memory, 100 * kMiB) == CUDA_SUCCESS);
  CHECK(test.quota.used() == 100 * kMiB);
  test.block();
  CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) == CUDA_SUCCESS);
  CHECK(test.quota.used() == 100 * kMiB);
  CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) != CUDA_SUCCESS);
  CHECK(test.quota.used() == 100 * kMiB);
  test.goOn();
  CHECK_FALSE(test.session.pendingFrees.settle());
  CHECK(test.quota.used() == 0);

  CHECK(worker::cuMemAlloc_v2(test.thread, &memory, 100 * kMiB) == CUDA_SUCCESS);
  test.block();
  CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) == CUDA_SUCCESS);
  unit::Waiter waiting = test.beside([](worker::Thread& thread) {
    CUdeviceptr next = 0;
    CHECK(worker::cuMemAlloc_v2(thread, &next, 100 * kMiB) == CUDA_SUCCESS);
  });
  test.release();
  waiting.join();
  CHECK(test.quota.used() == 100 * kMiB);
  CHECK(refused == 0);
  CHECK(worker::cuMemAlloc_v2(test.thread, &memory, 1000 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(refused == 1);
}

TEST_CASE("memory that a stream is to free is refunded once when its context ends") {
  Fixture test;
  CUcontext own = nullptr;
  CUdeviceptr memory = 0;
  CHECK(test.driver.cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(test.session.contexts.make(
            0, &own, [&] { return test.driver.cuCtxCreate_v2(&own, 0, 0); }) == CUDA_SUCCESS);
  CHECK(worker::cuMemAlloc_v2(test.thread, &memory, 10 * kMiB) == CUDA_SUCCESS);
  CHECK(worker::cuMemFreeAsync(test.thread, memory, nullptr) == CUDA_SUCCESS);
  CHECK(worker::cuCtxDestroy_v2(test.thread, own) == CUDA_SUCCESS);
  CHECK(test.quota.used() == 0);
  CHECK(test.driver.cuCtxSetCurrent(test.context) == CUDA_SUCCESS);
}

// Neither call waits for that.
TEST_CASE("a destroyed pool is charged until a stream frees its memory") {
  Fixture test;
  for (const bool freedFirst : {true, false}) {
    const CUmemoryPool pool = test.makePool();
    CUmemoryPool now = nullptr;
    CUdeviceptr memory = 0;
    CHECK(test.driver.cuDeviceSetMemPool(0, pool) == CUDA_SUCCESS);
    CHECK(worker::cuMemAllocAsync(test.thread, &memory, 64 * kMiB, test.stream) == CUDA_SUCCESS);
    CHECK(test.quota.used() == 64 * kMiB);
    test.block();
    if (freedFirst) CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) == CUDA_SUCCESS);
    CHECK(worker::cuMemPoolDestroy(test.thread, pool) == CUDA_SUCCESS);
    CHECK(test.driver.cuDeviceGetMemPool(&now, 0) == CUDA_SUCCESS);
    CHECK(now != pool);
    if (!freedFirst)
      CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) == CUDA_SUCCESS);
    CHECK(test.session.pools.settle());
    CHECK(test.quota.used() == 64 * kMiB);
    test.goOn();
    cuuint64_t bytes = 0;
    CHECK(test.driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes) ==
          CUDA_SUCCESS);
    CHECK(bytes == 0);
    CHECK(!test.session.pools.settle());
    CHECK(test.quota.used() == 0);
    CHECK(test.driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes) !=
          CUDA_SUCCESS);
  }
  CUmemoryPool whole = nullptr;
  CHECK(test.driver.cuDeviceGetDefaultMemPool(&whole, 0) == CUDA_SUCCESS);
  CHECK(worker::cuMemPoolDestroy(test.thread, whole) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a pool that is destroyed beside a capture keeps its memory and its charge") {
  Fixture test;
  const CUmemoryPool pool = test.makePool();
  CUdeviceptr memory = 0;
  CHECK(worker::cuMemAllocFromPoolAsync(test.thread, &memory, kMiB, pool, test.stream) ==
        CUDA_SUCCESS);
  CUstream other = nullptr;
  CUgraph graph = nullptr;
  CHECK(test.driver.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(test.driver.cuStreamBeginCapture_v2(other, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(worker::cuMemPoolDestroy(test.thread, pool) == CUDA_SUCCESS);
  CHECK(test.quota.used() == 32 * kMiB);
  CHECK(test.driver.cuStreamEndCapture(other, &graph) == CUDA_SUCCESS);
  CHECK(test.driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(worker::cuMemFreeAsync(test.thread, memory, test.stream) == CUDA_SUCCESS);
  CHECK(test.driver.cuStreamSynchronize(test.stream) == CUDA_SUCCESS);
  CHECK(!test.session.pools.settle());
  CHECK(test.quota.used() == 0);
  CHECK(test.driver.cuStreamDestroy_v2(other) == CUDA_SUCCESS);
}

TEST_CASE("a pool grows only by what the quota has, whatever work holds its blocks") {
  Fixture test;
  CUdeviceptr first = 0, second = 0;
  CHECK(worker::cuMemAllocAsync(test.thread, &first, 80 * kMiB, test.stream) == CUDA_SUCCESS);
  test.block();
  CHECK(worker::cuMemFreeAsync(test.thread, first, test.stream) == CUDA_SUCCESS);
  // The block may be used again behind the same work, but not beside it.
  CHECK(worker::cuMemAllocAsync(test.thread, &second, 80 * kMiB, test.stream) == CUDA_SUCCESS);
  CHECK(second == first);
  CHECK(worker::cuMemFreeAsync(test.thread, second, test.stream) == CUDA_SUCCESS);
  unit::Waiter allocating = test.beside([&](worker::Thread& thread) {
    CHECK(worker::cuMemAllocAsync(thread, &second, 80 * kMiB, nullptr) == CUDA_SUCCESS);
  });
  CHECK(allocating.waits());
  CHECK(test.quota.used() == 96 * kMiB);
  test.release();
  allocating.join();
  CHECK(test.quota.used() == 96 * kMiB);
  CHECK(test.quota.peak() <= kLimit);
  CHECK(worker::cuMemFree_v2(test.thread, second) == CUDA_SUCCESS);
}

TEST_CASE("a free of pool memory waits for no work") {
  Fixture test;
  CUdeviceptr memory = 0;
  CHECK(worker::cuMemAllocAsync(test.thread, &memory, kMiB, test.stream) == CUDA_SUCCESS);
  test.block();
  CHECK(worker::cuMemFree_v2(test.thread, memory) == CUDA_SUCCESS);
  CHECK(test.driver.cuStreamQuery(test.stream) == CUDA_ERROR_NOT_READY);
  test.release();
}

TEST_CASE("no other stream gets memory that work before its last allocation may use") {
  Fixture test;
  CUdeviceptr first = 0, second = 0, other = 0;
  CHECK(worker::cuMemAllocAsync(test.thread, &first, kMiB, test.stream) == CUDA_SUCCESS);
  test.block();
  CHECK(worker::cuMemFreeAsync(test.thread, first, test.stream) == CUDA_SUCCESS);
  CHECK(worker::cuMemAllocAsync(test.thread, &second, kMiB, test.stream) == CUDA_SUCCESS);
  CHECK(second == first);
  CHECK(worker::cuMemFree_v2(test.thread, second) == CUDA_SUCCESS);
  CHECK(worker::cuMemAllocAsync(test.thread, &other, kMiB, nullptr) == CUDA_SUCCESS);
  CHECK(other != first);
  test.release();
  CHECK(test.driver.cuStreamSynchronize(test.stream) == CUDA_SUCCESS);
  CHECK(worker::cuMemAllocAsync(test.thread, &second, kMiB, nullptr) == CUDA_SUCCESS);
  CHECK(second == first);
}

// The call of another thread may end the wait.
TEST_CASE("a thread that waits for memory stops no other thread") {
  Fixture test;
  CUdeviceptr large = 0;
  CHECK(worker::cuMemAllocAsync(test.thread, &large, 90 * kMiB, test.stream) == CUDA_SUCCESS);
  CHECK(test.quota.used() == 96 * kMiB);
  test.block();
  CHECK(worker::cuMemFreeAsync(test.thread, large, test.stream) == CUDA_SUCCESS);
  unit::Waiter allocating = test.beside([&](worker::Thread& thread) {
    CUdeviceptr next = 0;
    CHECK(worker::cuMemAllocAsync(thread, &next, 96 * kMiB, nullptr) == CUDA_SUCCESS);
  });
  CHECK(allocating.waits());
  for (int i = 0; i < 100; ++i) CHECK(test.session.pools.settle());
  test.release();
  allocating.join();
}

TEST_CASE("host memory that the driver does not release stays mapped") {
  Fixture test;
  constexpr std::uint64_t kBytes = 4096;
  void* const free = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto address = reinterpret_cast<std::uint64_t>(free);
  test.session.shared.window = {address, address + kBytes};
  const auto allocate = [&](std::uint64_t id) {
    const int file = memfd_create("host", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(ftruncate(file, kBytes) == 0);
    CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    test.session.shared.put(id, file);
    CHECK(test.call(CallNumber::cuMemHostAlloc, id, address, kBytes, 0u) == CUDA_SUCCESS);
  };
  allocate(1);
  CUgraph graph = nullptr;
  CHECK(test.driver.cuStreamBeginCapture_v2(test.stream, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
        CUDA_SUCCESS);
  CHECK(test.call(CallNumber::cuMemFreeHost, address) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(test.session.shared.contains(address, kBytes));
  CHECK(test.driver.cuStreamEndCapture(test.stream, &graph) ==
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(test.call(CallNumber::cuMemFreeHost, address) == CUDA_SUCCESS);
  CHECK(!test.session.shared.contains(address, kBytes));
  CHECK(test.call(CallNumber::cuMemFreeHost, address) == CUDA_ERROR_INVALID_VALUE);
  // Memory that was registered with a context is free once the context has ended.
  allocate(2);
  CHECK(test.call(CallNumber::cuDevicePrimaryCtxReset_v2, CUdevice{0}) == CUDA_SUCCESS);
  CHECK(test.driver.cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(test.call(CallNumber::cuMemFreeHost, address) == CUDA_SUCCESS);
  CHECK(!test.session.shared.contains(address, kBytes));
}

TEST_CASE("handles of a context end with it, and no others") {
  Fixture test;
  const auto make = [&](CallNumber call, auto... arguments) {
    CHECK(test.call(call, arguments...) == CUDA_SUCCESS);
    return test.answer;
  };
  const auto lives = [&](wire::HandleKind kind, std::uint64_t handle) {
    return test.session.handles.find(kind, handle) != nullptr;
  };
  const std::uint64_t kept = make(CallNumber::cuEventCreate, 0u);
  for (const bool primary : {false, true}) {
    const std::uint64_t context =
        primary ? wire::primaryContextHandle(0) : make(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
    CHECK(test.call(CallNumber::cuCtxSetCurrent, context) == CUDA_SUCCESS);
    const std::uint64_t before = test.session.handles.size();
    const std::uint64_t stream = make(CallNumber::cuStreamCreate, 0u);
    const std::uint64_t event = make(CallNumber::cuEventCreate, 0u);
    CHECK(test.session.handles.size() == before + 2);
    CHECK((primary ? test.call(CallNumber::cuDevicePrimaryCtxReset_v2, CUdevice{0}) == CUDA_SUCCESS
                   : test.call(CallNumber::cuCtxDestroy_v2, context) == CUDA_SUCCESS));
    CHECK(test.call(CallNumber::cuStreamQuery, stream) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(!lives(wire::HandleKind::stream, stream));
    CHECK(!lives(wire::HandleKind::event, event));
    CHECK(lives(wire::HandleKind::event, kept) == !primary);
  }
}

/// Loads `parts` as a client sends them, by one of the two calls that take code.
CUresult loadImage(Fixture& test, CallNumber call, const std::vector<std::string>& parts) {
  static std::uint64_t id = 1000;
  std::string content;
  std::vector<std::uint64_t> words{++id, parts.size()};
  for (const std::string& part : parts) {
    content += part + std::string((8 - part.size() % 8) % 8, '\0');
    words.push_back(part.size());
  }
  const int file = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
  test.session.shared.put(id, file);
  words.push_back(0);  // JIT options
  words.resize(8, 0);
  return parts.size() == 1   ? test.call(call, words[0], words[1], words[2], words[3])
         : parts.size() == 2 ? test.call(call, words[0], words[1], words[2], words[3], words[4])
                             : CUDA_ERROR_INVALID_VALUE;
}

// The simulated driver follows the pointers of a wrapper as a real one does.
TEST_CASE("no byte of an image becomes an address") {
  const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }";
  const std::string variable =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .b8 x[0x4000000];";
  struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const char* data = nullptr;
    const void* objects = nullptr;
  } wrapper;
  const std::string fatbin = [&] {
    struct {
      std::uint32_t magic = 0xba55ed50;
      std::uint16_t version = 1, headerSize = 16;
      std::uint64_t size = 0;
      std::uint16_t kind = 1, entryVersion = 0x101;
      std::uint32_t entryHeader = 64;
      std::uint64_t payload = 0;
      std::uint32_t compressed = 0, options = 0;
      std::uint16_t minor = 0, major = 8;
      std::uint32_t arch = 80, name = 0, nameSize = 0;
      std::uint64_t flags = 0x11, reserved = 0, unpacked = 0;
    } header;
    header.payload = variable.size() + 1;
    header.size = 64 + header.payload;
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + variable + '\0';
  }();
  for (const CallNumber call : {CallNumber::cuModuleLoadDataEx, CallNumber::cuLibraryLoadData}) {
    Fixture test;
    for (const char* target : {fatbin.data(), reinterpret_cast<const char*>(0x4141414141414141)}) {
      wrapper.data = target;
      const std::string sent(reinterpret_cast<const char*>(&wrapper), sizeof wrapper);
      CHECK(loadImage(test, call, {sent}) == CUDA_ERROR_INVALID_IMAGE);
      CHECK(test.answer == 0);
      CHECK(loadImage(test, call, {sent + '\0'}) == CUDA_ERROR_INVALID_IMAGE);
      CHECK(loadImage(test, call, {fatbin, sent}) != CUDA_SUCCESS);
    }
    CHECK(test.quota.used() == 0);
    CHECK(loadImage(test, call, {text}) == CUDA_ERROR_INVALID_IMAGE);  // without a final zero
    CHECK(loadImage(test, call, {text + '\0'}) == CUDA_SUCCESS);
    CHECK(test.answer != 0);
    CHECK(test.quota.used() == 0);
    // 64 MiB, of which 8 MiB are provided; a second time they do not fit.
    CHECK(loadImage(test, call, {fatbin}) == CUDA_SUCCESS);
    CHECK(test.quota.used() == 56 * kMiB);
    CHECK(loadImage(test, call, {fatbin, fatbin}) == CUDA_SUCCESS);
    CHECK(test.quota.used() == 120 * kMiB);
    CHECK(loadImage(test, call, {fatbin}) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(test.quota.used() == 120 * kMiB);
  }
}

/// A driver that takes more memory for code than its image says, at the load or at the first use.
namespace taking {

worker::Driver real{};
std::uint64_t bytes = 0;
std::vector<CUdeviceptr> taken;
const Neighbour* neighbour = nullptr;
bool callsKernel = false;  ///< as kernel_calls.h counts

void take() {
  worker::kernelCalls += callsKernel;
  CUdeviceptr memory = 0;
  if (bytes > 0 && real.cuMemAlloc_v2(&memory, bytes) == CUDA_SUCCESS) taken.push_back(memory);
  if (neighbour != nullptr) neighbour->step();
}
void giveBack() {
  if (taken.empty()) return;
  real.cuMemFree_v2(taken.back());
  taken.pop_back();
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                            CUjit_option* options, void** values) {
  take();
  return real.cuModuleLoadDataEx(module, image, count, options, values);
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  take();
  return real.cuModuleGetFunction(function, module, name);
}
CUresult cuModuleUnload(CUmodule module) { return giveBack(), real.cuModuleUnload(module); }
CUresult cuLibraryUnload(CUlibrary library) { return giveBack(), real.cuLibraryUnload(library); }
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (taken.empty()) take();
  return real.cuKernelGetFunction(function, kernel);
}

void stepInto(worker::Driver& driver) {
  real = driver;
  driver.cuModuleLoadDataEx = cuModuleLoadDataEx;
  driver.cuModuleGetFunction = cuModuleGetFunction;
  driver.cuModuleUnload = cuModuleUnload;
  driver.cuLibraryUnload = cuLibraryUnload;
  driver.cuKernelGetFunction = cuKernelGetFunction;
}

}  // namespace taking

constexpr char kKernel[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }";

// What a neighbour takes at the same moment is not.
TEST_CASE("memory that the driver takes for code is charged") {
  Fixture test;
  taking::stepInto(test.session.driver);
  const std::string text(kKernel, sizeof kKernel);
  const auto load = [&] { return loadImage(test, CallNumber::cuModuleLoadDataEx, {text}); };
  constexpr std::uint64_t kMargin = worker::HeldMemory::kMargin;

  taking::neighbour = &node().neighbour;
  CHECK(load() == CUDA_SUCCESS);
  CHECK(test.quota.used() == 0);
  taking::neighbour = nullptr;

  taking::bytes = 48 * kMiB;
  CHECK(load() == CUDA_SUCCESS);
  CHECK(test.quota.used() == 48 * kMiB - kMargin);
  const std::uint64_t module = test.answer;
  CHECK(load() == CUDA_SUCCESS);
  CHECK(test.quota.used() == 96 * kMiB - kMargin);
  CHECK(load() == CUDA_SUCCESS);
  CHECK(test.quota.used() == 144 * kMiB - kMargin);
  CHECK(load() == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(test.quota.used() == 144 * kMiB - kMargin);
  CHECK(taking::taken.size() == 3);
  CHECK(test.call(CallNumber::cuModuleUnload, module) == CUDA_SUCCESS);
  CHECK(test.quota.used() == 96 * kMiB - kMargin);
  CHECK(load() == CUDA_SUCCESS);
  CHECK(test.quota.used() == 144 * kMiB - kMargin);
  while (!taking::taken.empty()) taking::giveBack();
  taking::bytes = 0;
}

// Beyond the quota the call fails before the kernel runs, and the library is unloaded.
TEST_CASE("memory that the driver takes at the first use of code is charged") {
  Fixture test;
  taking::stepInto(test.session.driver);
  const std::string text(kKernel, sizeof kKernel);
  const auto launch = [&](std::uint64_t kernel) {
    wire::LaunchFrame frame{};
    frame.function = kernel;
    for (int i = 0; i < 3; ++i) frame.grid[i] = frame.block[i] = 1;
    return test.call(CallNumber::cuLaunchKernel, frame);
  };
  for (const bool fits : {true, false}) {
    CHECK(loadImage(test, CallNumber::cuLibraryLoadData, {text}) == CUDA_SUCCESS);
    const std::uint64_t code = test.answer;
    CUlibrary object = nullptr;
    CUkernel kernel = nullptr;
    CHECK(test.thread.find<CUlibrary>(code, &object) == CUDA_SUCCESS);
    CHECK(taking::real.cuLibraryGetKernel(&kernel, object, "k") == CUDA_SUCCESS);
    const std::uint64_t handle = test.thread.add(wire::HandleKind::kernel, kernel, code);
    taking::bytes = fits ? 48 * kMiB : 256 * kMiB;
    const std::uint64_t launched = test.figures.launches.load();
    CHECK(launch(handle) == (fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY));
    CHECK(test.figures.launches.load() == launched + fits);
    CHECK(taking::taken.size() == fits);
    CHECK(launch(handle) == (fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE));
    if (fits) CHECK(test.quota.used() == 48 * kMiB - worker::HeldMemory::kMargin);
    if (fits) CHECK(test.call(CallNumber::cuLibraryUnload, code) == CUDA_SUCCESS);
    CHECK(test.quota.used() == 0);
    CHECK(taking::taken.empty());
  }
  taking::bytes = 0;
}

/// Frame of a find. `name`: at most 7 characters.
CUresult findFunction(Fixture& test, std::uint64_t module, const char* name) {
  std::array<char, 8> text{};
  std::strncpy(text.data(), name, text.size() - 1);
  return test.call(CallNumber::cuModuleGetFunction, module, std::strlen(name) + 1, text);
}

// The comparison takes longer than to find a function.
TEST_CASE("memory is not compared when the driver has not called the kernel") {
  Fixture test;
  taking::stepInto(test.session.driver);
  constexpr std::uint64_t kMargin = worker::HeldMemory::kMargin;
  worker::kernelCallsCounted = true;
  taking::bytes = 48 * kMiB;
  const std::string text(kKernel, sizeof kKernel);
  CHECK(loadImage(test, CallNumber::cuModuleLoadDataEx, {text}) == CUDA_SUCCESS);
  const std::uint64_t module = test.answer;
  CHECK(test.quota.used() == 0);
  taking::callsKernel = true;
  CHECK(findFunction(test, module, "k") == CUDA_SUCCESS);
  CHECK(test.quota.used() == 96 * kMiB - kMargin);
  taking::callsKernel = worker::kernelCallsCounted = false;
  while (!taking::taken.empty()) taking::giveBack();
  taking::bytes = 0;
}

/// A driver that logs an error when it is asked for a parameter that does not exist.
namespace complaining {

worker::Driver real{};
CUlogsCallback log = nullptr;
void* logData = nullptr;

CUresult cuLogsRegisterCallback(CUlogsCallback callback, void* data, CUlogsCallbackHandle*) {
  log = callback, logData = data;
  return CUDA_SUCCESS;
}
void complain() {
  char sentence[] = "complaint";
  log(logData, CU_LOG_LEVEL_ERROR, sentence, sizeof sentence - 1);
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  const CUresult status = real.cuFuncGetParamInfo(function, index, offset, size);
  if (status != CUDA_SUCCESS) complain();
  return status;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const CUresult status = real.cuModuleGetFunction(function, module, name);
  if (status != CUDA_SUCCESS) complain();
  return status;
}

}  // namespace complaining

TEST_CASE("the program's log has the errors of its own calls alone") {
  Fixture test;
  worker::Driver& driver = test.session.driver;
  complaining::real = driver;
  driver.cuLogsRegisterCallback = complaining::cuLogsRegisterCallback;
  driver.cuFuncGetParamInfo = complaining::cuFuncGetParamInfo;
  driver.cuModuleGetFunction = complaining::cuModuleGetFunction;
  test.session.forwardDriverLog();
  const std::string text(kKernel, sizeof kKernel);
  CHECK(loadImage(test, CallNumber::cuModuleLoadDataEx, {text}) == CUDA_SUCCESS);
  const std::uint64_t module = test.answer;
  const auto logged = [&](const char* name, CUresult expected) {
    const int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    test.output.setWake(wake);
    CHECK(findFunction(test, module, name) == expected);
    eventfd_t texts = 0;
    const bool any = eventfd_read(wake, &texts) == 0;
    test.output.setWake(-1);
    close(wake);
    return any;
  };
  CHECK(!logged("k", CUDA_SUCCESS));
  CHECK(logged("none", CUDA_ERROR_NOT_FOUND));
}

// The driver would write them among the host's files.
TEST_CASE("flags for core dumps are masked") {
  Fixture test;
  constexpr unsigned kDumps = CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE;
  CHECK(test.call(CallNumber::cuCtxCreate_v4, kDumps | CU_CTX_SCHED_YIELD, CUdevice{0}) ==
        CUDA_SUCCESS);
  unsigned flags = 0;
  const auto flagsOfCurrent =
      reinterpret_cast<CUresult (*)(unsigned*)>(dlsym(node().library, "cuCtxGetFlags"));
  CHECK(flagsOfCurrent(&flags) == CUDA_SUCCESS);
  CHECK((flags & kDumps) == 0);
  CHECK((flags & CU_CTX_SCHED_YIELD) != 0);
  int active = 0;
  CHECK(worker::cuDevicePrimaryCtxSetFlags_v2(test.thread, 0, kDumps | CU_CTX_SCHED_SPIN) ==
        CUDA_SUCCESS);
  CHECK(test.driver.cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(flags == CU_CTX_SCHED_SPIN);
}

}  // namespace
