// Every entry point that gives the GPU work, called by a program whose share of a GPU is fixed at 5
// %: nothing is admitted without a grant, and what is admitted is charged. The list comes from
// cuda-api/, so a call that is new there fails here until it can be invoked.
//
// The program, the arbiter that is played, and what gpu-proxy would do are this process; worker,
// driver and real arbiter are as they ship.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cuda_abi.h"
#include "native/arbiter/mailbox_file.h"
#include "native/arbiter/test/played.h"
#include "submissions.h"
#include "test/unit/program.h"
#include "test/unit/waiting.h"

namespace {

using arbiter::Grant;
using arbiter::Time;
using unit::comesTrue;

constexpr std::size_t kSmall = 4096, kLarge = std::size_t{1} << 20, kRow = 64;
constexpr const char* kKernel = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry touch(.param .u64 place) {
  .reg .u64 %rd<2>;
  ld.param.u64 %rd1, [place];
  st.global.u32 [%rd1], 7;
  ret;
}
)";

// Arguments of the calls below.
CUcontext context = nullptr;
CUdeviceptr to = 0, from = 0;
std::vector<std::byte> host(kLarge);
CUfunction kernel = nullptr;
CUevent event = nullptr;
CUmemoryPool pool = nullptr;
CUgraph graph = nullptr;
CUgraphExec exec = nullptr;
CUgreenCtx green = nullptr;
CUstream stream = nullptr;  // the default stream
CUstream own = nullptr;     // batches of copies refuse the default stream
CUarray array = nullptr;    // of one dimension
void** parameters() {
  static void* place = &to;
  return &place;
}
/// A launch of before CUDA 4.
template <class Launch, class... Arguments>
CUresult afterArguments(Launch launch, Arguments... arguments) {
  CUresult status = cuFuncSetBlockShape(kernel, 1, 1, 1);
  if (status == CUDA_SUCCESS) status = cuParamSetv(kernel, 0, &to, sizeof to);
  return status == CUDA_SUCCESS ? launch(arguments...) : status;
}
const CUlaunchConfig* configuration() {
  static const CUlaunchConfig one{1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, 0};
  return &one;
}
CUDA_LAUNCH_PARAMS* oneGrid() {
  static CUstream own = nullptr;
  static CUDA_LAUNCH_PARAMS one{kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters()};
  if (own == nullptr && cuStreamCreate(&own, CU_STREAM_DEFAULT) != CUDA_SUCCESS) return nullptr;
  one.hStream = own;
  return &one;
}
CUstreamBatchMemOpParams* operation() {
  static thread_local CUstreamBatchMemOpParams one;
  one = {};
  one.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  one.writeValue.address = to;
  return &one;
}
CUresult instantiate(decltype(&cuGraphInstantiateWithParams) call) {
  CUDA_GRAPH_INSTANTIATE_PARAMS upload{};
  upload.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  CUgraphExec made = nullptr;
  return call(&made, graph, &upload);
}
const CUDA_MEMCPY2D* rows(std::size_t bytes) {
  static thread_local CUDA_MEMCPY2D copy;
  copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = kRow;
  copy.Height = bytes / kRow;
  return &copy;
}

const CUDA_MEMCPY3D* box(std::size_t bytes) {
  static thread_local CUDA_MEMCPY3D copy;
  copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = kRow;
  copy.srcHeight = copy.dstHeight = copy.Height = bytes / kRow / 2;
  copy.Depth = 2;
  return &copy;
}
const CUDA_MEMCPY3D_PEER* boxOfPeers(std::size_t bytes) {
  static thread_local CUDA_MEMCPY3D_PEER copy;
  std::memcpy(&copy, box(bytes), sizeof copy);
  copy.srcContext = copy.dstContext = context;
  return &copy;
}
std::size_t* sizeOf(std::size_t bytes) {
  static thread_local std::size_t size;
  return size = bytes, &size;
}
std::size_t* firstOfAll() {
  static std::size_t first = 0;
  return &first;
}
CUmemcpyAttributes* attributes() {
  static CUmemcpyAttributes attributes{CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, {}, {}, 0};
  return &attributes;
}
CUDA_MEMCPY3D_BATCH_OP* operation(std::size_t bytes) {
  static thread_local CUDA_MEMCPY3D_BATCH_OP copy;
  copy = {};
  copy.src.type = copy.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  copy.src.op.ptr.ptr = from;
  copy.dst.op.ptr.ptr = to;
  copy.extent = {kRow, bytes / kRow, 1};
  copy.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return &copy;
}

/// Copies between host and device pass the gate when they are large: the copy engines do them, at
/// the speed of the bus.
enum class Sizes { all, small };

struct Invocation {
  Sizes sizes;
  std::function<CUresult(std::size_t bytes)> call;
};

#define SUBMISSION(sizes, name, suffix, ...)                                                 \
  {#name, {sizes, []([[maybe_unused]] std::size_t bytes) { return name(__VA_ARGS__); }}}, {  \
#name "_" #suffix, {                                                                     \
      sizes, []([[maybe_unused]] std::size_t bytes) { return name##_##suffix(__VA_ARGS__); } \
    }                                                                                        \
  }

const std::map<std::string_view, Invocation> kInvocations{
    SUBMISSION(Sizes::small, cuMemcpyHtoD_v2, ptds, to, host.data(), bytes),
    SUBMISSION(Sizes::small, cuMemcpyDtoH_v2, ptds, host.data(), from, bytes),
    SUBMISSION(Sizes::all, cuMemcpyDtoD_v2, ptds, to, from, bytes),
    SUBMISSION(Sizes::all, cuMemcpy2D_v2, ptds, rows(bytes)),
    SUBMISSION(Sizes::all, cuMemcpy2DUnaligned_v2, ptds, rows(bytes)),
    SUBMISSION(Sizes::all, cuMemcpyDtoA_v2, ptds, array, 0, from, bytes),
    SUBMISSION(Sizes::all, cuMemcpyAtoD_v2, ptds, to, array, 0, bytes),
    SUBMISSION(Sizes::small, cuMemcpyHtoA_v2, ptds, array, 0, host.data(), bytes),
    SUBMISSION(Sizes::small, cuMemcpyAtoH_v2, ptds, host.data(), array, 0, bytes),
    SUBMISSION(Sizes::all, cuMemcpyAtoA_v2, ptds, array, 0, array, kLarge, bytes),
    SUBMISSION(Sizes::small, cuMemcpyHtoAAsync_v2, ptsz, array, 0, host.data(), bytes, stream),
    SUBMISSION(Sizes::small, cuMemcpyAtoHAsync_v2, ptsz, host.data(), array, 0, bytes, stream),
    SUBMISSION(Sizes::all, cuMemcpy3D_v2, ptds, box(bytes)),
    SUBMISSION(Sizes::all, cuMemcpy3DAsync_v2, ptsz, box(bytes), stream),
    SUBMISSION(Sizes::all, cuMemcpy3DPeer, ptds, boxOfPeers(bytes)),
    SUBMISSION(Sizes::all, cuMemcpy3DPeerAsync, ptsz, boxOfPeers(bytes), stream),
    SUBMISSION(Sizes::all, cuMemcpyBatchAsync, ptsz, &to, &from, sizeOf(bytes), 1, attributes(),
               firstOfAll(), 1, nullptr, own),
    SUBMISSION(Sizes::all, cuMemcpyBatchAsync_v2, ptsz, &to, &from, sizeOf(bytes), 1, attributes(),
               firstOfAll(), 1, own),
    SUBMISSION(Sizes::all, cuMemcpy3DBatchAsync, ptsz, 1, operation(bytes), nullptr, 0, own),
    SUBMISSION(Sizes::all, cuMemcpy3DBatchAsync_v2, ptsz, 1, operation(bytes), 0, own),
    SUBMISSION(Sizes::small, cuMemcpyHtoDAsync_v2, ptsz, to, host.data(), bytes, stream),
    SUBMISSION(Sizes::small, cuMemcpyDtoHAsync_v2, ptsz, host.data(), from, bytes, stream),
    SUBMISSION(Sizes::all, cuMemcpyDtoDAsync_v2, ptsz, to, from, bytes, stream),
    SUBMISSION(Sizes::all, cuMemcpy2DAsync_v2, ptsz, rows(bytes), stream),
    SUBMISSION(Sizes::all, cuMemcpy, ptds, to, from, bytes),
    SUBMISSION(Sizes::all, cuMemcpyAsync, ptsz, to, from, bytes, stream),
    SUBMISSION(Sizes::all, cuMemcpyPeer, ptds, to, context, from, context, bytes),
    SUBMISSION(Sizes::all, cuMemcpyPeerAsync, ptsz, to, context, from, context, bytes, stream),
    SUBMISSION(Sizes::all, cuLaunchKernel, ptsz, kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters(),
               nullptr),
    SUBMISSION(Sizes::all, cuLaunchKernelEx, ptsz, configuration(), kernel, parameters(), nullptr),
    SUBMISSION(Sizes::all, cuLaunchCooperativeKernel, ptsz, kernel, 1, 1, 1, 1, 1, 1, 0, stream,
               parameters()),
    SUBMISSION(Sizes::small, cuGraphLaunch, ptsz, exec, stream),
    SUBMISSION(Sizes::small, cuGraphUpload, ptsz, exec, stream),
    {"cuGraphInstantiateWithParams",
     {Sizes::small, [](std::size_t) { return instantiate(cuGraphInstantiateWithParams); }}},
    {"cuGraphInstantiateWithParams_ptsz",
     {Sizes::small, [](std::size_t) { return instantiate(cuGraphInstantiateWithParams_ptsz); }}},
    SUBMISSION(Sizes::all, cuMemsetD8_v2, ptds, to, 1, bytes),
    SUBMISSION(Sizes::all, cuMemsetD16_v2, ptds, to, 1, bytes / 2),
    SUBMISSION(Sizes::all, cuMemsetD32_v2, ptds, to, 1, bytes / 4),
    SUBMISSION(Sizes::all, cuMemsetD2D8_v2, ptds, to, kRow, 1, kRow, bytes / kRow),
    SUBMISSION(Sizes::all, cuMemsetD2D16_v2, ptds, to, kRow, 1, kRow / 2, bytes / kRow),
    SUBMISSION(Sizes::all, cuMemsetD2D32_v2, ptds, to, kRow, 1, kRow / 4, bytes / kRow),
    SUBMISSION(Sizes::all, cuMemsetD8Async, ptsz, to, 1, bytes, stream),
    SUBMISSION(Sizes::all, cuMemsetD16Async, ptsz, to, 1, bytes / 2, stream),
    SUBMISSION(Sizes::all, cuMemsetD32Async, ptsz, to, 1, bytes / 4, stream),
    SUBMISSION(Sizes::all, cuMemsetD2D8Async, ptsz, to, kRow, 1, kRow, bytes / kRow, stream),
    SUBMISSION(Sizes::all, cuMemsetD2D16Async, ptsz, to, kRow, 1, kRow / 2, bytes / kRow, stream),
    SUBMISSION(Sizes::all, cuMemsetD2D32Async, ptsz, to, kRow, 1, kRow / 4, bytes / kRow, stream),
    {"cuLaunchCooperativeKernelMultiDevice",
     {Sizes::all,
      [](std::size_t) { return cuLaunchCooperativeKernelMultiDevice(oneGrid(), 1, 0); }}},
    {"cuLaunch", {Sizes::all, [](std::size_t) { return afterArguments(cuLaunch, kernel); }}},
    {"cuLaunchGrid",
     {Sizes::all, [](std::size_t) { return afterArguments(cuLaunchGrid, kernel, 1, 1); }}},
    {"cuLaunchGridAsync",
     {Sizes::all,
      [](std::size_t) { return afterArguments(cuLaunchGridAsync, kernel, 1, 1, stream); }}},
};
#undef SUBMISSION

void nothingToDo(void*) {}
void nothingToCall(CUstream, CUresult, void*) {}

/// More markers than a gate lets through with a piece of work.
template <class Call>
Invocation manyOf(Call call) {
  return {Sizes::small, [call](std::size_t) {
            CUresult status = CUDA_SUCCESS;
            for (int i = 0; i < 64 && status == CUDA_SUCCESS; ++i) status = call();
            return status;
          }};
}

/// Memory that is taken in a stream and given back there.
template <class Allocate, class Free>
Invocation manyTaken(Allocate allocate, Free free) {
  return manyOf([allocate, free] {
    CUdeviceptr memory = 0;
    const CUresult status = allocate(&memory);
    return status == CUDA_SUCCESS ? free(memory, stream) : status;
  });
}

#define MARKER(name, suffix, ...)                                          \
  {#name, manyOf([] { return name(__VA_ARGS__); })}, {                     \
#name "_" #suffix, manyOf([] { return name##_##suffix(__VA_ARGS__); }) \
  }

const std::map<std::string_view, Invocation> kMarkers{
    MARKER(cuEventRecord, ptsz, event, stream),
    MARKER(cuEventRecordWithFlags, ptsz, event, stream, 0),
    MARKER(cuStreamWaitEvent, ptsz, stream, event, 0),
    MARKER(cuLaunchHostFunc, ptsz, stream, nothingToDo, nullptr),
    MARKER(cuStreamAddCallback, ptsz, stream, nothingToCall, nullptr, 0),
    MARKER(cuStreamWriteValue32_v2, ptsz, stream, to, 1, 0),
    MARKER(cuStreamWriteValue64_v2, ptsz, stream, to, 1, 0),
    MARKER(cuStreamWaitValue32_v2, ptsz, stream, from, 0, CU_STREAM_WAIT_VALUE_GEQ),
    MARKER(cuStreamWaitValue64_v2, ptsz, stream, from, 0, CU_STREAM_WAIT_VALUE_GEQ),
    MARKER(cuStreamBatchMemOp_v2, ptsz, stream, 1, operation(), 0),
    {"cuGreenCtxRecordEvent", manyOf([] { return cuGreenCtxRecordEvent(green, event); })},
    {"cuGreenCtxWaitEvent", manyOf([] { return cuGreenCtxWaitEvent(green, event); })},
    {"cuCtxRecordEvent", manyOf([] { return cuCtxRecordEvent(context, event); })},
    {"cuCtxWaitEvent", manyOf([] { return cuCtxWaitEvent(context, event); })},
    {"cuMemAllocAsync",
     manyTaken([](CUdeviceptr* at) { return cuMemAllocAsync(at, kSmall, stream); },
               cuMemFreeAsync)},
    {"cuMemAllocAsync_ptsz",
     manyTaken([](CUdeviceptr* at) { return cuMemAllocAsync_ptsz(at, kSmall, stream); },
               cuMemFreeAsync_ptsz)},
    {"cuMemAllocFromPoolAsync",
     manyTaken([](CUdeviceptr* at) { return cuMemAllocFromPoolAsync(at, kSmall, pool, stream); },
               cuMemFreeAsync)},
    {"cuMemAllocFromPoolAsync_ptsz",
     manyTaken(
         [](CUdeviceptr* at) { return cuMemAllocFromPoolAsync_ptsz(at, kSmall, pool, stream); },
         cuMemFreeAsync_ptsz)},
    {"cuMemFreeAsync",
     manyTaken([](CUdeviceptr* at) { return cuMemAllocAsync(at, kSmall, stream); },
               cuMemFreeAsync)},
    {"cuMemFreeAsync_ptsz",
     manyTaken([](CUdeviceptr* at) { return cuMemAllocAsync_ptsz(at, kSmall, stream); },
               cuMemFreeAsync_ptsz)},
};
#undef MARKER

/// Null if there is none.
const Invocation* invocationOf(std::string_view name) {
  for (const auto* all : {&kInvocations, &kMarkers})
    if (const auto found = all->find(name); found != all->end()) return &found->second;
  return nullptr;
}

int listenAt(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path.c_str(), sizeof name.sun_path - 1);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
      listen(listener, 4) != 0)
    std::abort();
  return listener;
}

/// Starts a worker for the first program that connects, as gpu-proxy does.
class Proxy {
 public:
  Proxy(const std::string& directory, std::string worker, std::string driver)
      : socket_(directory + "/gpu.sock"),
        arbiter_(directory + "/arbiter.sock"),
        worker_(std::move(worker)),
        driver_(std::move(driver)) {
    listener_ = listenAt(socket_);
    setenv("NVIDIA_VIRTUAL_SOCKET", socket_.c_str(), 1);
    thread_ = std::thread([this] { serve(); });
  }
  ~Proxy() {
    thread_.join();
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    close(listener_);
    unlink(socket_.c_str());
  }

  std::atomic<pid_t> pid{0};

 private:
  void serve() {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    std::array arguments{worker_.data(),      option("--driver"), driver_.data(),
                         option("--arbiter"), arbiter_.data(),    option(nullptr)};
    const pid_t child = fork();
    if (child == 0) {
      // By contract with gpu-proxy: 3 is the connection, 4 the report.
      const int held = fcntl(connection, F_DUPFD, 10), report = open("/dev/null", O_WRONLY);
      dup2(held, 3);
      dup2(report, 4);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    pid = child;
    close(connection);
  }
  static char* option(const char* name) { return const_cast<char*>(name); }

  std::string socket_, arbiter_, worker_, driver_;
  int listener_ = -1;
  std::thread thread_;
};

CUresult makeGraph() {
  CUDA_MEMSET_NODE_PARAMS memset{};
  memset.dst = to, memset.elementSize = 4, memset.width = kSmall / 4, memset.height = 1;
  CUgraphNode node = nullptr;
  if (const CUresult status = cuGraphCreate(&graph, 0); status != CUDA_SUCCESS) return status;
  if (const CUresult status = cuGraphAddMemsetNode(&node, graph, nullptr, 0, &memset, context);
      status != CUDA_SUCCESS)
    return status;
  return cuGraphInstantiateWithFlags(&exec, graph, 0);
}

CUresult makeArray() {
  const CUDA_ARRAY_DESCRIPTOR descriptor{2 * kLarge / 16, 0, CU_AD_FORMAT_FLOAT, 4};
  return cuArrayCreate_v2(&array, &descriptor);
}

CUresult makeGreen() {
  CUdevResource whole{};
  CUdevResourceDesc description = nullptr;
  CUresult status = cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM);
  if (status == CUDA_SUCCESS) status = cuDevResourceGenerateDesc(&description, &whole, 1);
  return status == CUDA_SUCCESS
             ? cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM)
             : status;
}

/// Prepares the session for submissions, with calls that wait for no grant.
void prepare() {
  CUmodule module = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc_v2(&to, kLarge) != CUDA_SUCCESS ||
      cuMemAlloc_v2(&from, kLarge) != CUDA_SUCCESS ||
      cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS ||
      cuDeviceGetDefaultMemPool(&pool, 0) != CUDA_SUCCESS ||
      cuModuleLoadData(&module, kKernel) != CUDA_SUCCESS ||
      cuModuleGetFunction(&kernel, module, "touch") != CUDA_SUCCESS ||
      makeGraph() != CUDA_SUCCESS || makeArray() != CUDA_SUCCESS || makeGreen() != CUDA_SUCCESS ||
      cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    std::fprintf(stderr, "the session cannot be prepared\n");
    std::_Exit(1);
  }
}

bool succeeds(const Invocation& invocation, std::size_t bytes) {
  const CUresult submitted = invocation.call(bytes);
  const CUresult ended = cuCtxSynchronize();
  if (submitted != CUDA_SUCCESS || ended != CUDA_SUCCESS)
    std::fprintf(stderr, "it returned %d, and its work %d\n", submitted, ended);
  return submitted == CUDA_SUCCESS && ended == CUDA_SUCCESS;
}

/// The arbiter's end of one worker's connection: grants what the test says.
class PlayedArbiter {
 public:
  explicit PlayedArbiter(const std::string& path) : path_(path), listener_(listenAt(path)) {}
  ~PlayedArbiter() {
    close(connection_);
    close(listener_);
    unlink(path_.c_str());
  }

  arbiter::Mailbox* mailbox = nullptr;

  void accept() { connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); }
  /// Sends the first grant.
  void introduce() {
    const int file = arbiter::createMailbox(mailbox);
    if (file < 0) std::abort();
    mailbox->grant = arbiter::nextWord(0, Grant::closed);
    mailbox->queueNanoseconds = 2'000'000;
    CHECK(arbiter::sendMailbox(connection_, file));
    close(file);
  }
  std::uint32_t set(Grant grant) const {
    const std::uint32_t word = arbiter::nextWord(mailbox->grant.load(), grant);
    mailbox->grant.store(word);
    syscall(SYS_futex, &mailbox->grant, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    send(connection_, "g", 1, MSG_NOSIGNAL);
    return word;
  }
  bool waits() const { return mailbox->wants.load() > 0; }

 private:
  std::string path_;
  int listener_, connection_ = -1;
};

/// A thread of the program that submits once and waits for the end of it.
struct Submitter : unit::Waiter {
  Submitter(const Invocation& invocation, std::size_t bytes)
      : Waiter([&invocation, bytes] {
          CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
          CHECK(succeeds(invocation, bytes));
        }) {}
};

void passesOnlyWithAGrant(const PlayedArbiter& played, std::string_view name,
                          const Invocation& invocation, std::size_t bytes) {
  CAPTURE(std::string(name));
  CAPTURE(bytes);
  {
    const Submitter submitter(invocation, bytes);
    CHECK(comesTrue([&] { return played.waits() || submitter.ended(); }));
    CHECK(!submitter.ended());
    played.set(Grant::window);
  }
  const std::uint32_t word = played.set(Grant::closed);
  CHECK(comesTrue([&] { return played.mailbox->drained.load() == word; }));
}

/// A directory for sockets.
struct Directory {
  char path[32] = "/tmp/submission-test-XXXXXX";
  Directory() { REQUIRE(mkdtemp(path) != nullptr); }
  ~Directory() { rmdir(path); }
};

const char* worker() { return unit::argument(0, "the path of nvidia-virtual-worker"); }
const char* driver() { return unit::argument(1, "the path of the simulated driver"); }

void testGrants(const std::string& directory) {
  PlayedArbiter played(directory + "/arbiter.sock");
  Proxy proxy(directory, worker(), driver());
  prepare();
  {
    // The arbiter is there and has said nothing yet.
    played.accept();
    const Submitter early(kInvocations.at("cuMemsetD8Async"), kSmall);
    CHECK(early.waits());
    played.introduce();
    CHECK(comesTrue([&] { return played.waits() || early.ended(); }));
    CHECK(!early.ended());
    played.set(Grant::window);
  }
  const std::uint32_t word = played.set(Grant::closed);
  CHECK(comesTrue([&] { return played.mailbox->drained.load() == word; }));
  for (const std::string_view name : kSubmissions) {
    const Invocation* found = invocationOf(name);
    if (found == nullptr) continue;
    passesOnlyWithAGrant(played, name, *found, kSmall);
    if (found->sizes == Sizes::all) passesOnlyWithAGrant(played, name, *found, kLarge);
  }
}

/// A grant is given only once all earlier charges have been earned, less what may be saved up. Both
/// sides of the comparison come from the arbiter; a slow machine makes only the right one larger.
void isCharged(arbiter::test::Control& control, Time begin, std::string_view name,
               const Invocation& invocation) {
  CAPTURE(std::string(name));
  constexpr Time kSaved = 5 * arbiter::kMillisecond;  // 5 % of 100 ms
  for (int grants = 0; grants < 2;) {
    const arbiter::TimeUse before = control.figures()["tenant"];
    CHECK(succeeds(invocation, kSmall));
    const Time passed = arbiter::test::monotonic() - begin;
    const arbiter::TimeUse after = control.figures()["tenant"];
    if (after.windows == before.windows)
      continue;  // the window of the last submission was still open
    ++grants;
    CHECK(before.granted + before.overrun <= passed * 5 / 100 + kSaved);
    CHECK(after.granted + after.overrun > before.granted + before.overrun);
  }
}

void testAccounts(const std::string& directory) {
  const char* arbiter = unit::argument(2, "the path of nvidia-virtual-arbiter");
  const std::string path = directory + "/arbiter.sock";
  const pid_t pid = fork();
  if (pid == 0) execl(arbiter, arbiter, "--socket", path.c_str(), nullptr), _exit(127);
  {
    Proxy proxy(directory, worker(), driver());
    arbiter::test::Control control(path);
    prepare();
    const Time begin = arbiter::test::monotonic();
    control.say("allocation tenant 5 fixed 0 gpu");
    control.say("worker " + std::to_string(proxy.pid.load()) + " tenant");
    for (const std::string_view name : kSubmissions) {
      if (const Invocation* found = invocationOf(name)) isCharged(control, begin, name, *found);
    }
  }
  kill(pid, SIGTERM);
  waitpid(pid, nullptr, 0);
  for (const char* file : {"", ".lock"}) unlink((path + file).c_str());
}

TEST_CASE("every call that submits work is tried") {
  std::set<std::string_view> listed(std::begin(kSubmissions), std::end(kSubmissions));
  for (const std::string_view name : listed) {
    if (invocationOf(name) != nullptr) continue;
    FAIL_CHECK(std::string(name) << " submits work, and kInvocations lacks it");
  }
  for (const auto* all : {&kInvocations, &kMarkers})
    for (const auto& [name, invocation] : *all) CHECK(listed.contains(name));
}

// A program has one session in its life, so these cases run in processes of their own.

TEST_CASE("work passes only with a grant") {
  const Directory directory;
  unit::inChild([&] { testGrants(directory.path); });
}

TEST_CASE("work that passes is charged") {
  const Directory directory;
  unit::inChild([&] { testAccounts(directory.path); });
}

}  // namespace
