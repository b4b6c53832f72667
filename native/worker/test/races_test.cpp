// A hostile client without the interposer: calls without tickets and with tickets that repeat, skip
// or never come; and threads that create, use and destroy each other's objects at the same time, by
// every call that creates or destroys an object, while the session is suspended again and again.
// Afterwards the quota matches the driver.
#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "call_facts.h"
#include "native/worker/session/sharing.h"
#include "native/worker/session/suspension.h"
#include "native/worker/test/ring_client.h"
#include "test/unit/program.h"
#include "test/unit/waiting.h"
#include "wire/launch.h"

namespace {

using worker::test::kMiB;
using worker::test::Reply;
using Client = worker::test::RingClient;

constexpr std::uint64_t kLimit = 6144 * kMiB;
constexpr int kThreads = 4;
constexpr int kRounds = 2000;  ///< of each thread
/// At most so many sessions, until each call has succeeded: 38 of 40 sessions had them all.
constexpr unsigned kMostSessions = 20;

void* library() {
  static void* const opened =
      dlopen(unit::argument(0, "the path of the simulated driver"), RTLD_NOW | RTLD_LOCAL);
  return opened;
}

/// A session whose driver only counts calls.
std::atomic<int> driverCalls{0};
template <class R, class... A>
void onlyCount(R (*&function)(A...)) {
  function = [](A...) { return ++driverCalls, R{}; };
}

struct Order {
  worker::Report report{-1};
  worker::Quota quota;
  worker::Figures figures;
  worker::Output output;
  worker::Session session{-1, report, quota, figures, output, {}};

  Order() {
    worker::forEachFunction([&]<auto Member>(const char*) { onlyCount(session.driver.*Member); });
    driverCalls = 0;
  }
  /// Returns why the session ended.
  std::string end() { return session.serve(-1, {}); }
};

std::string usedTwice(std::uint64_t number) {
  return "the client used ticket " + std::to_string(number * wire::kTicket) +
         " twice, or out of order";
}

// Each call gets a ticket if the specification says that it has none, and none otherwise.
TEST_CASE("a call with a wrong or missing ticket ends the session") {
  for (std::size_t number = 1; number <= kCallCount; ++number) {
    Order test;
    Client client(test.session);
    client.publish(static_cast<CallNumber>(number), kCallFacts[number].ordered ? 0 : 1);
    const std::string reason = test.end();
    CHECK(reason.find(kCallNames[number]) != std::string::npos);
    CHECK(reason.find("ticket") != std::string::npos);
    CHECK(driverCalls == 0);
  }
}

TEST_CASE("a ticket that is used twice ends the session") {
  for (const std::uint64_t again : {1, 2}) {
    Order test;
    Client client(test.session);
    client.publish(CallNumber::passTicket, wire::kTicket);
    client.publish(CallNumber::passTicket, 2 * wire::kTicket);
    client.publish(CallNumber::passTicket, again * wire::kTicket);
    CHECK(test.end() == usedTwice(again));
  }
}

TEST_CASE("a shared ticket counts") {
  Order test;
  Client client(test.session);
  client.publish(CallNumber::passTicket, wire::kTicket, wire::kFrameShares);
  client.publish(CallNumber::passTicket, wire::kTicket);
  CHECK(test.end() == usedTwice(1));
}

TEST_CASE("a call that runs alone has no shared ticket") {
  for (std::size_t number = 1; number <= kCallCount; ++number) {
    using enum CallNumber;
    const auto call = static_cast<CallNumber>(number);
    if (!kCallFacts[number].ordered || call == cuLaunchKernel || call == cuLaunchKernelEx ||
        call == cuStreamSynchronize || call == passTicket)
      continue;
    Order test;
    Client client(test.session);
    client.publish(call, wire::kTicket, wire::kFrameShares);
    CHECK(test.end() == "the client shared the ticket of a call that runs alone");
    CHECK(driverCalls == 0);
  }
}

TEST_CASE("of two threads with one ticket, one gets its turn, and the session ends") {
  Order test;
  Client one(test.session), two(test.session);
  one.publish(CallNumber::passTicket, wire::kTicket);
  two.publish(CallNumber::passTicket, wire::kTicket);
  CHECK(test.end() == usedTwice(1));
}

// It holds up the session's threads only.
TEST_CASE("a ticket that never comes does not delay the end of the session") {
  Order test;
  Client one(test.session), two(test.session);
  one.publish(CallNumber::cuCtxSynchronize, 2 * wire::kTicket);
  two.publish(CallNumber::cuCtxSynchronize, ~std::uint64_t{0});
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  CHECK(pidfd >= 0);
  CHECK(test.session.serve(pidfd, {}) == "client exited");
  close(pidfd);
  waitpid(child, nullptr, 0);
  CHECK(driverCalls == 0);
  test.session.turn.stop();  // the worker's process would exit
}

/// The objects that the client's threads have made, shared by all of them.
class Objects {
 public:
  void add(wire::HandleKind kind, std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    if (handle != 0) lists_[kind].push_back(handle);
  }
  /// One of the last objects; it may have been destroyed.
  std::uint64_t pick(wire::HandleKind kind, unsigned random) {
    const std::lock_guard lock(mutex_);
    const auto& list = lists_[kind];
    if (list.empty()) return 0;
    const std::size_t recent = std::min<std::size_t>(list.size(), 6);
    return list[list.size() - 1 - random % recent];
  }
  std::vector<std::uint64_t> all(wire::HandleKind kind) { return lists_[kind]; }

 private:
  std::mutex mutex_;
  std::map<wire::HandleKind, std::vector<std::uint64_t>> lists_;
};

// Addresses are kept in lists of kinds that no such call uses.
constexpr auto kMemory = wire::HandleKind::linkState;
constexpr auto kRange = wire::HandleKind::surface;
constexpr std::uint64_t kPiece = 2 * kMiB;  ///< the unit in which the simulated GPU gives memory
constexpr std::uint64_t kHostBytes = 65536;
constexpr int kHostPlaces = 4;
constexpr wire::AddressRange kWindow{0x5502'0000'0000, 0x5502'4000'0000};
/// Where the client's own memory lies: addresses that nothing else in this process uses.
constexpr std::uint64_t kRegistered = 0x5501'0000'0000;  ///< ThreadSanitizer leaves it free too

/// A process of the same allocation, which exports an event and a pool.
class Neighbour {
 public:
  Neighbour() {
    CHECK(mkdtemp(directory_) != nullptr);
    const int file = open(exports().c_str(), O_CREAT | O_RDWR, 0600);
    const std::uint32_t header[2] = {0x4e565831, 1};
    CHECK(ftruncate(file, 256 + 4096 * 384) == 0);
    CHECK(write(file, header, sizeof header) == sizeof header);
    close(file);
    int ends[2];
    CHECK(pipe(ends) == 0);
    child_ = fork();
    if (child_ == 0) run(ends[1]);
    close(ends[1]);
    CHECK(read(ends[0], &name_, sizeof name_) == sizeof name_);
    CHECK(read(ends[0], &pool_, sizeof pool_) == sizeof pool_);
    close(ends[0]);
  }
  ~Neighbour() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(directory_);
  }
  const char* directory() const { return directory_; }
  CUipcEventHandle event() const { return std::bit_cast<CUipcEventHandle>(name_); }
  const worker::SharedName& pool() const { return pool_; }

 private:
  std::string exports() const { return std::string(directory_) + "/exports"; }

  [[noreturn]] void run(int to) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    worker::ExportTable table;
    worker::Driver driver;
    CUcontext context = nullptr;
    CUevent event = nullptr;
    CUipcEventHandle content{};
    const bool made = worker::Sharing::open(directory_, 1, table).empty() &&
                      worker::load(library(), driver) && driver.cuInit(0) == CUDA_SUCCESS &&
                      driver.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
                      driver.cuCtxSetCurrent(context) == CUDA_SUCCESS &&
                      driver.cuEventCreate(&event, CU_EVENT_INTERPROCESS |
                                                       CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
                      driver.cuIpcGetEventHandle(&content, event) == CUDA_SUCCESS;
    if (!made) _exit(1);
    worker::Sharing sharing(table);
    const auto name =
        sharing.share(worker::ExportTable::Kind::event, reinterpret_cast<std::uint64_t>(event),
                      context, 0, std::bit_cast<worker::SharedName>(content));
    if (!name || write(to, &*name, sizeof *name) != sizeof *name) _exit(1);
    worker::FileExports exports(sharing, table);
    const auto pool = exportPool(driver, exports);
    if (!pool || write(to, &*pool, sizeof *pool) != sizeof *pool) _exit(1);
    for (;;) pause();
  }

  /// The program keeps its end of the sockets.
  static std::optional<worker::SharedName> exportPool(const worker::Driver& driver,
                                                      worker::FileExports& exports) {
    CUmemoryPool pool = nullptr;
    CUmemPoolProps properties = worker::test::devicePool();
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    int file = -1, ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0 ||
        driver.cuMemPoolCreate(&pool, &properties) != CUDA_SUCCESS ||
        driver.cuMemPoolExportToShareableHandle(&file, pool, properties.handleTypes, 0) !=
            CUDA_SUCCESS)
      return std::nullopt;
    return exports.add({worker::ExportTable::Kind::pool, 1}, 0, worker::OwnedFile(file),
                       worker::OwnedFile(ends[1]), {});
  }

  char directory_[32] = "/tmp/races-test-XXXXXX";
  pid_t child_ = -1;
  worker::SharedName name_{};
  worker::SharedName pool_{};
};

struct Fixture {
  const Neighbour& neighbour;
  worker::Report report{-1};
  worker::Quota quota;
  worker::Figures figures;
  worker::Output output;
  std::unique_ptr<worker::Session> session;
  Objects objects;
  wire::TicketCounter tickets;
  std::atomic<std::uint64_t> files{0};
  std::uint64_t host = 0;
  std::uint64_t contextMemory = 0;
  CUdeviceptr lasting = 0;        ///< memory that graphs use: a launch after its end is a fault
  std::uint64_t main = 0;         ///< a context that lives until the end
  std::uint64_t description = 0;  ///< of all multiprocessors; nothing frees it
  std::uint64_t freeAtStart = 0;
  CUcontext observer = nullptr;
  std::mutex done;
  std::set<CallNumber> succeeded;

  explicit Fixture(const Neighbour& beside) : neighbour(beside) {
    const std::string path = worker::test::makeQuotaFile(0);
    CHECK(quota.open(path, 0, kLimit).empty());
    unlink(path.c_str());
    CHECK(worker::Sharing::open(neighbour.directory(), 0, quota.exports).empty());
    worker::Driver driver;
    CUcontext popped = nullptr;
    if (!worker::load(library(), driver) || driver.cuInit(0) != CUDA_SUCCESS) std::abort();
    if (driver.cuCtxCreate_v2(&observer, 0, 0) != CUDA_SUCCESS) std::abort();
    // The bytes that the worker takes in each context share a page of the simulated GPU.
    CUdeviceptr page = 0;
    if (driver.cuMemAlloc_v2(&page, 1) != CUDA_SUCCESS) std::abort();
    driver.cuCtxPopCurrent_v2(&popped);
    worker::Limits limits{};
    session = std::make_unique<worker::Session>(-1, report, quota, figures, output, limits);
    session->driver = driver;
    freeAtStart = freeMemory();
    CUcontext context = nullptr;
    if (driver.cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) std::abort();
    limits.contextMemory = contextMemory = freeAtStart - freeMemory();
    driver.cuCtxDestroy_v2(context);
    session = std::make_unique<worker::Session>(-1, report, quota, figures, output, limits);
    session->driver = driver;
    session->memory.install(session->driver, false);
    // far from where other mappings come to lie
    static const bool reserved = wire::reserve(kWindow);
    CHECK(reserved);
    host = kWindow.begin;
    session->shared.window = kWindow;
  }
  ~Fixture() { session->driver.cuCtxDestroy_v2(observer); }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  std::uint64_t freeMemory() {
    std::size_t free = 0, total = 0;
    CUcontext popped = nullptr;
    session->driver.cuCtxPushCurrent_v2(observer);
    session->driver.cuMemGetInfo_v2(&free, &total);
    session->driver.cuCtxPopCurrent_v2(&popped);
    return free;
  }
  std::uint64_t held() { return freeAtStart - freeMemory(); }
};

constexpr const char* kCode = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 8 .b8 variable[16777216];
.visible .entry small(.param .u64 out) { ret; }
)";

/// One thread of the hostile client.
class Attacker {
 public:
  Attacker(Fixture& test, unsigned seed) : test_(test), client_(*test.session), random_(seed) {}

  template <class... T>
  Reply call(CallNumber number, T... arguments) {
    return send(number, [&](wire::Encoder& frame) { (frame.put(arguments), ...); });
  }
  template <class Encode>
  Reply send(CallNumber number, Encode encode) {
    const bool ordered = kCallFacts[static_cast<int>(number)].ordered;
    const bool mayShare =
        number == CallNumber::cuLaunchKernel || number == CallNumber::cuStreamSynchronize;
    const bool shares = mayShare && random_() % 4 != 0;
    const std::uint64_t ticket = !ordered ? 0
                                 : shares ? test_.tickets.takeShared()
                                          : test_.tickets.take();
    const Reply reply = client_.send(number, ticket, shares ? wire::kFrameShares : 0, encode);
    const std::lock_guard lock(test_.done);
    if (reply.status == CUDA_SUCCESS) test_.succeeded.insert(number);
    return reply;
  }

  std::uint64_t pick(wire::HandleKind kind) { return test_.objects.pick(kind, random_()); }
  unsigned random() { return random_(); }
  Fixture& test() { return test_; }

  template <class... T>
  void make(wire::HandleKind kind, CallNumber number, T... arguments) {
    if (const Reply reply = call(number, arguments...); reply.status == CUDA_SUCCESS)
      test_.objects.add(kind, reply.handle);
  }
  /// Makes only a third of the destroying calls, so that objects live for a while.
  void end(wire::HandleKind kind, CallNumber number) {
    if (random() % 3 == 0) call(number, pick(kind));
  }
  void setCurrent(std::uint64_t context) { call(CallNumber::cuCtxSetCurrent, context); }

  /// The resource must be one that the worker has given.
  std::uint64_t describe() {
    CUdevResource whole{};
    const auto ask = test_.session->driver.cuDeviceGetDevResource;
    CHECK(ask(0, &whole, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
    call(CallNumber::cuDeviceGetDevResource, CUdevice{0}, CU_DEV_RESOURCE_TYPE_SM);
    return send(CallNumber::cuDevResourceGenerateDesc,
                [&](wire::Encoder& frame) { frame.putBytes(&whole, sizeof whole); })
        .handle;
  }
  void load(wire::HandleKind kind, CallNumber number) {
    const Reply reply = worker::test::load(*this, *test_.session, number, ++test_.files, kCode);
    if (reply.status == CUDA_SUCCESS) test_.objects.add(kind, reply.handle);
  }
  void named(wire::HandleKind of, wire::HandleKind kind, CallNumber number) {
    const Reply reply = send(
        number, [&](wire::Encoder& frame) { frame.put(pick(of)), frame.putBytes("small", 6); });
    if (reply.status == CUDA_SUCCESS) test_.objects.add(kind, reply.handle);
  }
  void launch(CallNumber number, wire::HandleKind kind) {
    const bool listed = number == CallNumber::cuLaunchCooperativeKernelMultiDevice;
    const std::uint64_t stream = listed || random() % 2 ? pick(wire::HandleKind::stream) : 0;
    const wire::LaunchFrame frame{pick(kind), stream, {1, 1, 1}, {1, 1, 1}, 0, 8};
    send(number, [&](wire::Encoder& out) {
      out.put(frame);
      out.put<std::uint64_t>(0);
      if (listed) out.put(0u);
      if (number == CallNumber::cuLaunchKernelEx) out.putBytes(nullptr, 0);
    });
  }
  /// A node without dependencies. `more`: the last arguments of the call.
  template <class... T>
  void addNode(CallNumber number, T... more) {
    make(wire::HandleKind::graphNode, number, pick(wire::HandleKind::graph), std::uint64_t{0},
         std::uint64_t{0}, more...);
  }
  void addMemory() {
    const std::uint64_t graph = pick(wire::HandleKind::graph);
    const Reply reply = worker::test::addNode(*this, graph, worker::test::memoryNode(kMiB));
    if (reply.status != CUDA_SUCCESS) return;
    test_.objects.add(wire::HandleKind::graphNode, reply.handle);
    test_.objects.add(kMemory, reply.second);
    call(CallNumber::cuGraphAddMemFreeNode, graph, std::uint64_t{8}, reply.handle, std::uint64_t{1},
         reply.second);
  }
  void findInClone() {
    const std::uint64_t graph = pick(wire::HandleKind::graph);
    const Reply clone = call(CallNumber::cuGraphClone, graph);
    if (clone.status != CUDA_SUCCESS) return;
    test_.objects.add(wire::HandleKind::graph, clone.handle);
    for (int i = 0; i < 4; ++i)
      call(CallNumber::cuGraphNodeFindInClone, pick(wire::HandleKind::graphNode), clone.handle);
  }
  /// Relaxed, because another mode forbids what other threads do.
  void capture() {
    const std::uint64_t stream = pick(wire::HandleKind::stream);
    call(CallNumber::cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    call(CallNumber::cuEventRecord, pick(wire::HandleKind::event), stream);
    launch(CallNumber::cuLaunchKernel, wire::HandleKind::function);
    const Reply info = call(CallNumber::cuStreamGetCaptureInfo_v3, stream);
    if (info.status == CUDA_SUCCESS) call(CallNumber::cuGraphDestroy, info.second);
    make(wire::HandleKind::graph, CallNumber::cuStreamEndCapture, stream);
  }
  /// Of threads whose context ended in the middle of one.
  void endCaptures() {
    for (const std::uint64_t each : test_.objects.all(wire::HandleKind::stream))
      make(wire::HandleKind::graph, CallNumber::cuStreamEndCapture, each);
  }
  void makeTexture() {
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = reinterpret_cast<CUarray>(pick(wire::HandleKind::array));
    const Reply made = send(CallNumber::cuTexObjectCreate, [&](wire::Encoder& frame) {
      frame.put(resource);
      frame.put(CUDA_TEXTURE_DESC{});
      frame.putBytes(nullptr, 0);
    });
    if (made.status == CUDA_SUCCESS) test_.objects.add(wire::HandleKind::texture, made.handle);
  }
  /// Memory that the process exports and imports itself, by a descriptor that it then closes.
  void importOwn() {
    const std::uint64_t id = ++test_.files;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    test_.session->shared.put(id, ends[1]);
    const Reply made = call(CallNumber::cuMemExportToShareableHandle,
                            pick(wire::HandleKind::genericAllocation), id);
    if (made.status == CUDA_SUCCESS) {
      const std::array<std::uint64_t, 8> name{made.handle, made.second};
      make(wire::HandleKind::genericAllocation, CallNumber::cuMemImportFromShareableHandle, name);
    }
    close(ends[0]);
  }
  std::uint64_t managedPlace() {
    return kWindow.begin + (1 + random() % kHostPlaces) * wire::kManagedUnit;
  }
  void allocateManaged() {
    const std::uint64_t id = ++test_.files;
    test_.session->shared.put(id, worker::test::memoryFile("", kHostBytes, F_SEAL_SHRINK));
    call(CallNumber::allocateManaged, id, managedPlace(), kHostBytes);
  }
  /// Also ranges that are not in the memory.
  void moveToGpu() {
    const std::uint64_t address = managedPlace();
    const std::uint64_t begin = address + random() % 3 * 4096;
    const wire::AddressRange ranges[] = {{begin, begin + 4096},
                                         {begin, begin + random() % kHostBytes}};
    send(CallNumber::moveManagedToGpu, [&](wire::Encoder& frame) {
      frame.put(address);
      frame.putBytes(ranges, sizeof ranges);
    });
  }
  void allocateHost() {
    const std::uint64_t id = ++test_.files;
    test_.session->shared.put(id, worker::test::memoryFile("", kHostBytes, F_SEAL_SHRINK));
    call(CallNumber::cuMemHostAlloc, id, test_.host + random() % kHostPlaces * kHostBytes,
         kHostBytes, 0u);
  }
  std::uint64_t registeredPlace() { return kRegistered + random() % kHostPlaces * kHostBytes; }
  /// Registrations that begin in the middle of a piece, and overlap the next one.
  void registerHost() {
    const std::uint64_t id = ++test_.files;
    test_.session->shared.put(id, worker::test::memoryFile("", kHostBytes, F_SEAL_SHRINK));
    const worker::SharedMemory::Piece piece{id, registeredPlace(), kHostBytes, 0};
    send(CallNumber::cuMemHostRegister_v2, [&](wire::Encoder& frame) {
      frame.put(piece.address + random() % 2 * 4096);
      frame.put<std::uint64_t>(kHostBytes - 4096 + random() % 2 * kHostBytes);
      frame.put(0u);
      frame.putBytes(&piece, sizeof piece);
    });
  }

 private:
  Fixture& test_;
  Client client_;
  std::mt19937 random_;
};

using Action = std::function<void(Attacker&)>;

std::map<CallNumber, Action> actions() {
  using enum CallNumber;
  using enum wire::HandleKind;
  const auto make = [](wire::HandleKind kind, CallNumber number, auto... arguments) {
    return Action([=](Attacker& one) { one.make(kind, number, arguments...); });
  };
  const auto end = [](wire::HandleKind kind, CallNumber number) {
    return Action([=](Attacker& one) { one.end(kind, number); });
  };
  const auto use = [](wire::HandleKind kind, CallNumber number, auto... more) {
    return Action([=](Attacker& one) { one.call(number, one.pick(kind), more...); });
  };
  const auto plain = [](CallNumber number, auto... arguments) {
    return Action([=](Attacker& one) { one.call(number, arguments...); });
  };
  CUDA_MEMSET_NODE_PARAMS memset{};
  memset.elementSize = memset.height = memset.width = 1;
  CUgraphNodeParams empty{};
  empty.type = CU_GRAPH_NODE_TYPE_EMPTY;
  const CUDA_ARRAY3D_DESCRIPTOR volume{256, 256, 2, CU_AD_FORMAT_FLOAT, 4, 0};
  const CUmemLocation device = worker::test::devicePool().location;
  CUmemAccessDesc access{device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemAllocationProp shareable = worker::test::deviceMemory();
  shareable.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return {
      {cuCtxCreate_v4,
       [](Attacker& one) {
         one.make(context, cuCtxCreate_v4, 0u, CUdevice{0});
         if (one.random() % 2) one.setCurrent(one.test().main);
       }},
      {cuCtxDestroy_v2, end(context, cuCtxDestroy_v2)},
      {cuCtxSetCurrent,
       [](Attacker& one) {
         one.setCurrent(one.random() % 2 ? one.test().main : one.pick(context));
       }},
      {cuCtxSynchronize, plain(cuCtxSynchronize)},
      {cuCtxGetLimit, plain(cuCtxGetLimit, CU_LIMIT_STACK_SIZE)},
      {cuCtxSetLimit, plain(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, std::size_t{1024})},
      {cuDevicePrimaryCtxRetain, plain(cuDevicePrimaryCtxRetain, CUdevice{0})},
      {cuDevicePrimaryCtxRelease_v2, plain(cuDevicePrimaryCtxRelease_v2, CUdevice{0})},
      {cuDevicePrimaryCtxReset_v2, plain(cuDevicePrimaryCtxReset_v2, CUdevice{0})},
      {cuStreamCreate, make(stream, cuStreamCreate, 1u)},
      {cuStreamCreateWithPriority, make(stream, cuStreamCreateWithPriority, 1u, 0)},
      {cuStreamDestroy_v2, end(stream, cuStreamDestroy_v2)},
      {cuGreenCtxCreate,
       [](Attacker& one) {
         one.make(greenContext, cuGreenCtxCreate, one.test().description, CUdevice{0},
                  unsigned{CU_GREEN_CTX_DEFAULT_STREAM});
       }},
      {cuGreenCtxDestroy, end(greenContext, cuGreenCtxDestroy)},
      {cuGreenCtxStreamCreate,
       [](Attacker& one) {
         one.make(stream, cuGreenCtxStreamCreate, one.pick(greenContext),
                  unsigned{CU_STREAM_NON_BLOCKING}, 0);
       }},
      {cuStreamSynchronize, use(stream, cuStreamSynchronize)},
      {cuStreamGetFlags, use(stream, cuStreamGetFlags)},
      {cuStreamGetCtx, use(stream, cuStreamGetCtx)},
      {cuEventCreate, make(event, cuEventCreate, 0u)},
      {cuEventDestroy_v2, end(event, cuEventDestroy_v2)},
      {cuIpcOpenEventHandle,
       [](Attacker& one) { one.make(event, cuIpcOpenEventHandle, one.test().neighbour.event()); }},
      {cuEventRecord,
       [](Attacker& one) { one.call(cuEventRecord, one.pick(event), one.pick(stream)); }},
      {cuEventSynchronize, use(event, cuEventSynchronize)},
      {cuMemPoolCreate, make(memoryPool, cuMemPoolCreate, worker::test::devicePool())},
      {cuMemPoolDestroy, end(memoryPool, cuMemPoolDestroy)},
      {cuMemPoolTrimTo, use(memoryPool, cuMemPoolTrimTo, std::size_t{0})},
      {cuDeviceGetMemPool, plain(cuDeviceGetMemPool, CUdevice{0})},
      {cuDeviceGetDefaultMemPool, plain(cuDeviceGetDefaultMemPool, CUdevice{0})},
      {cuMemGetDefaultMemPool,
       plain(cuMemGetDefaultMemPool, device, CU_MEM_ALLOCATION_TYPE_PINNED)},
      {cuMemGetMemPool, plain(cuMemGetMemPool, device, CU_MEM_ALLOCATION_TYPE_PINNED)},
      {cuMemSetMemPool,
       [=](Attacker& one) {
         one.call(cuMemSetMemPool, device, CU_MEM_ALLOCATION_TYPE_PINNED, one.pick(memoryPool));
       }},
      {cuMemAlloc_v2, make(kMemory, cuMemAlloc_v2, std::size_t{2 * kPiece})},
      {cuMemAllocPitch_v2,
       make(kMemory, cuMemAllocPitch_v2, std::size_t{1024}, std::size_t{2 * kPiece / 1024}, 4u)},
      {cuMemAllocAsync,
       [](Attacker& one) {
         one.make(kMemory, cuMemAllocAsync, std::size_t{kMiB}, one.pick(stream));
       }},
      {cuMemAllocFromPoolAsync,
       [](Attacker& one) {
         one.make(kMemory, cuMemAllocFromPoolAsync, std::size_t{kMiB}, one.pick(memoryPool),
                  one.pick(stream));
       }},
      {cuMemFree_v2, use(kMemory, cuMemFree_v2)},
      {cuMemFreeAsync,
       [](Attacker& one) { one.call(cuMemFreeAsync, one.pick(kMemory), one.pick(stream)); }},
      {cuMemHostAlloc, [](Attacker& one) { one.allocateHost(); }},
      {allocateManaged, [](Attacker& one) { one.allocateManaged(); }},
      {placeManaged,
       [](Attacker& one) { one.call(placeManaged, one.managedPlace(), one.random() % 4 / 3); }},
      {moveManagedToGpu, [](Attacker& one) { one.moveToGpu(); }},
      {moveManagedToHost,
       [](Attacker& one) {
         const std::uint64_t begin = one.managedPlace();
         one.call(moveManagedToHost, begin, begin, begin + one.random() % (2 * kHostBytes));
       }},
      {freeManaged, [](Attacker& one) { one.call(freeManaged, one.managedPlace()); }},
      {cuMemHostRegister_v2, [](Attacker& one) { one.registerHost(); }},
      {cuMemHostUnregister,
       [](Attacker& one) { one.call(cuMemHostUnregister, one.registeredPlace()); }},
      {cuMemFreeHost,
       [](Attacker& one) {
         one.call(cuMemFreeHost, one.test().host + one.random() % kHostPlaces * kHostBytes);
       }},
      {cuArrayCreate_v2,
       make(array, cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR{256, 512, CU_AD_FORMAT_FLOAT, 4})},
      {cuArray3DCreate_v2, make(array, cuArray3DCreate_v2, volume)},
      {cuArrayDestroy, end(array, cuArrayDestroy)},
      {cuMipmappedArrayCreate, make(mipmappedArray, cuMipmappedArrayCreate, volume, 2u)},
      {cuMipmappedArrayGetLevel,
       [](Attacker& one) {
         one.make(array, cuMipmappedArrayGetLevel, one.pick(mipmappedArray), one.random() % 2);
       }},
      {cuMipmappedArrayDestroy, end(mipmappedArray, cuMipmappedArrayDestroy)},
      {cuTexObjectCreate, [](Attacker& one) { one.makeTexture(); }},
      {cuTexObjectDestroy, use(texture, cuTexObjectDestroy)},
      {cuTexRefCreate, make(textureReference, cuTexRefCreate)},
      {cuTexRefDestroy, end(textureReference, cuTexRefDestroy)},
      {cuTexRefGetArray,
       [](Attacker& one) {
         const std::uint64_t reference = one.pick(textureReference);
         one.call(cuTexRefSetArray, reference, one.pick(array), 1u);
         one.make(array, cuTexRefGetArray, reference);
       }},
      {cuTexRefGetMipmappedArray,
       [](Attacker& one) {
         const std::uint64_t reference = one.pick(textureReference);
         one.call(cuTexRefSetMipmappedArray, reference, one.pick(mipmappedArray), 1u);
         one.make(mipmappedArray, cuTexRefGetMipmappedArray, reference);
       }},
      {cuMemCreate, make(genericAllocation, cuMemCreate, std::size_t{kPiece}, shareable, 0ull)},
      {cuMemExportToShareableHandle, [](Attacker& one) { one.importOwn(); }},
      {cuMemImportFromShareableHandle, [](Attacker& one) { one.importOwn(); }},
      {cuMemPoolImportFromShareableHandle,
       [](Attacker& one) {
         one.make(memoryPool, cuMemPoolImportFromShareableHandle, one.test().neighbour.pool());
       }},
      {cuMemRelease, end(genericAllocation, cuMemRelease)},
      {cuMemAddressReserve, make(kRange, cuMemAddressReserve, std::size_t{kPiece}, std::size_t{0},
                                 CUdeviceptr{0}, 0ull)},
      {cuMemAddressFree,
       [](Attacker& one) {
         one.random() % 3 == 0 ? one.call(cuMemAddressFree, one.pick(kRange), kPiece) : Reply{};
       }},
      {cuMemMap,
       [](Attacker& one) {
         one.call(cuMemMap, one.pick(kRange), kPiece, std::uint64_t{0}, one.pick(genericAllocation),
                  0ull);
       }},
      {cuMemUnmap, use(kRange, cuMemUnmap, kPiece)},
      {cuMemSetAccess,
       [=](Attacker& one) {
         one.send(cuMemSetAccess, [&](wire::Encoder& frame) {
           frame.put(one.pick(kRange));
           frame.put(kPiece);
           frame.putBytes(&access, sizeof access);
           frame.put<std::uint64_t>(1);
         });
       }},
      {cuMemRetainAllocationHandle,
       [](Attacker& one) {
         one.make(genericAllocation, cuMemRetainAllocationHandle, one.pick(kRange));
       }},
      {cuMemGetAllocationPropertiesFromHandle,
       use(genericAllocation, cuMemGetAllocationPropertiesFromHandle)},
      {cuModuleLoadDataEx,
       [](Attacker& one) { one.load(wire::HandleKind::module, cuModuleLoadDataEx); }},
      {cuModuleUnload, end(wire::HandleKind::module, cuModuleUnload)},
      {cuModuleGetFunction,
       [](Attacker& one) { one.named(wire::HandleKind::module, function, cuModuleGetFunction); }},
      {cuFuncGetModule, use(function, cuFuncGetModule)},
      {cuModuleGetFunctionCount, use(wire::HandleKind::module, cuModuleGetFunctionCount)},
      {cuLibraryLoadData,
       [](Attacker& one) { one.load(wire::HandleKind::library, cuLibraryLoadData); }},
      {cuLibraryUnload, end(wire::HandleKind::library, cuLibraryUnload)},
      {cuLibraryGetKernel,
       [](Attacker& one) { one.named(wire::HandleKind::library, kernel, cuLibraryGetKernel); }},
      {cuLibraryGetModule, use(wire::HandleKind::library, cuLibraryGetModule)},
      {cuKernelGetLibrary, use(kernel, cuKernelGetLibrary)},
      {cuKernelGetFunction,
       [](Attacker& one) { one.make(function, cuKernelGetFunction, one.pick(kernel)); }},
      {cuLaunchKernel,
       [](Attacker& one) { one.launch(cuLaunchKernel, one.random() % 2 ? function : kernel); }},
      {cuLaunchKernelEx, [](Attacker& one) { one.launch(cuLaunchKernelEx, function); }},
      {cuGraphCreate, make(graph, cuGraphCreate, 0u)},
      {cuGraphClone, [](Attacker& one) { one.make(graph, cuGraphClone, one.pick(graph)); }},
      {cuGraphDestroy, end(graph, cuGraphDestroy)},
      {cuGraphAddEmptyNode, [](Attacker& one) { one.addNode(cuGraphAddEmptyNode); }},
      {cuGraphAddMemsetNode,
       [=](Attacker& one) {
         CUDA_MEMSET_NODE_PARAMS params = memset;
         params.dst = one.test().lasting;
         one.addNode(cuGraphAddMemsetNode, params, one.test().main);
       }},
      {cuGraphAddChildGraphNode,
       [](Attacker& one) { one.addNode(cuGraphAddChildGraphNode, one.pick(graph)); }},
      {cuGraphAddEventRecordNode,
       [](Attacker& one) { one.addNode(cuGraphAddEventRecordNode, one.pick(event)); }},
      {cuGraphAddEventWaitNode,
       [](Attacker& one) { one.addNode(cuGraphAddEventWaitNode, one.pick(event)); }},
      {cuGraphAddMemFreeNode, [](Attacker& one) { one.addMemory(); }},
      {cuGraphAddNode_v2,
       [=](Attacker& one) { worker::test::addNode(one, one.pick(graph), empty); }},
      {cuGraphChildGraphNodeGetGraph, use(graphNode, cuGraphChildGraphNodeGetGraph)},
      {cuGraphEventRecordNodeGetEvent, use(graphNode, cuGraphEventRecordNodeGetEvent)},
      {cuGraphEventWaitNodeGetEvent, use(graphNode, cuGraphEventWaitNodeGetEvent)},
      {cuGraphNodeFindInClone, [](Attacker& one) { one.findInClone(); }},
      {cuGraphDestroyNode, end(graphNode, cuGraphDestroyNode)},
      {cuGraphInstantiateWithParams,
       [](Attacker& one) {
         one.make(graphExec, cuGraphInstantiateWithParams, one.pick(graph), 0ull, std::uint64_t{0});
       }},
      {cuGraphLaunch,
       [](Attacker& one) { one.call(cuGraphLaunch, one.pick(graphExec), one.pick(stream)); }},
      {cuGraphExecDestroy, end(graphExec, cuGraphExecDestroy)},
      {cuStreamEndCapture, [](Attacker& one) { one.capture(); }},
      {cuStreamGetCaptureInfo_v3, use(stream, cuStreamGetCaptureInfo_v3)},
      {cuLaunchCooperativeKernel,
       [](Attacker& one) { one.launch(cuLaunchCooperativeKernel, function); }},
      {cuLaunchCooperativeKernelMultiDevice,
       [](Attacker& one) { one.launch(cuLaunchCooperativeKernelMultiDevice, function); }},
  };
}

/// A kind of objects that some call destroys.
bool canEnd(wire::HandleKind kind) {
  for (const CallFacts& facts : kCallFacts) {
    if (kind != wire::HandleKind::none && facts.destroys == kind) return true;
  }
  return kind == wire::HandleKind::genericAllocation;  // ended by cuMemRelease, which may have to
                                                       // be called more than once
}

/// Calls that cannot succeed here: the code has no references, and the simulated GPU no planes.
bool isPossible(CallNumber number) {
  using enum CallNumber;
  return number != cuModuleGetTexRef && number != cuModuleGetSurfRef &&
         number != cuSurfRefGetArray && number != cuArrayGetPlane;
}

/// Enumerations give handles of children, as the calls that name one do.
bool isTried(const std::map<CallNumber, Action>& known, std::size_t number) {
  const CallFacts& facts = kCallFacts[number];
  const bool wanted = facts.destroys != wire::HandleKind::none ||
                      facts.allocates != Allocates::nothing || canEnd(facts.gives);
  const auto call = static_cast<CallNumber>(number);
  return !wanted || known.contains(call) || !isPossible(call);
}

/// Waits for the work of all streams.
void synchronizeAll(Attacker& one) {
  for (const std::uint64_t each : one.test().objects.all(wire::HandleKind::context)) {
    one.setCurrent(each);
    one.endCaptures();
    one.call(CallNumber::cuCtxSynchronize);
  }
  one.setCurrent(wire::primaryContextHandle(0));
  one.call(CallNumber::cuCtxSynchronize);
  one.setCurrent(one.test().main);
  one.endCaptures();
  CHECK(one.call(CallNumber::cuCtxSynchronize).status == CUDA_SUCCESS);
  one.test().session->pools.settle();
  one.test().session->fileExports.settle();
}

void endEverything(Attacker& one) {
  using enum CallNumber;
  Objects& objects = one.test().objects;
  for (const std::uint64_t each : objects.all(kMemory)) one.call(cuMemFree_v2, each);
  synchronizeAll(one);                          // pools give back what is free
  one.call(cuDeviceGraphMemTrim, CUdevice{0});  // graphs keep what they gave back
  for (const std::uint64_t each : objects.all(wire::HandleKind::memoryPool))
    one.call(cuMemPoolDestroy, each);
  for (const std::uint64_t each : objects.all(wire::HandleKind::genericAllocation)) {
    while (one.call(cuMemRelease, each).status == CUDA_SUCCESS) continue;
  }
  for (const std::uint64_t each : objects.all(wire::HandleKind::graph))
    one.call(cuGraphDestroy, each);
  for (const std::uint64_t each : objects.all(wire::HandleKind::array))
    one.call(cuArrayDestroy, each);
  for (int i = 0; i < kHostPlaces; ++i) {
    one.call(cuMemFreeHost, one.test().host + i * kHostBytes);
    one.call(cuMemHostUnregister, kRegistered + i * kHostBytes);
    one.call(cuMemHostUnregister, kRegistered + i * kHostBytes + 4096);
  }
  for (const std::uint64_t each : objects.all(wire::HandleKind::stream))
    one.call(cuStreamDestroy_v2, each);
  for (const std::uint64_t each : objects.all(wire::HandleKind::event))
    one.call(cuEventDestroy_v2, each);
  for (const std::uint64_t each : objects.all(wire::HandleKind::context))
    one.call(cuCtxDestroy_v2, each);
  one.call(cuDevicePrimaryCtxReset_v2, CUdevice{0});
}

/// Ends objects that are charged by an estimate: mipmapped arrays, code, addresses, memory of
/// graphs, green contexts, managed memory. Others are charged exactly.
void endEstimates(Attacker& one) {
  using enum CallNumber;
  Objects& objects = one.test().objects;
  for (const std::uint64_t each : objects.all(wire::HandleKind::graphExec))
    one.call(cuGraphExecDestroy, each);
  one.call(cuDeviceGraphMemTrim, CUdevice{0});
  for (const std::uint64_t each : objects.all(kRange)) {
    one.call(cuMemUnmap, each, kPiece);
    one.call(cuMemAddressFree, each, kPiece);
  }
  for (int i = 1; i <= kHostPlaces; ++i)
    one.call(freeManaged, kWindow.begin + i * wire::kManagedUnit);
  for (const std::uint64_t each : objects.all(wire::HandleKind::mipmappedArray))
    one.call(cuMipmappedArrayDestroy, each);
  for (const std::uint64_t each : objects.all(wire::HandleKind::module))
    one.call(cuModuleUnload, each);
  for (const std::uint64_t each : objects.all(wire::HandleKind::library))
    one.call(cuLibraryUnload, each);
  for (const std::uint64_t each : objects.all(wire::HandleKind::greenContext))
    one.call(cuGreenCtxDestroy, each);
}

/// Suspends the session again and again while other threads call. A capture may refuse that.
class Suspender {
 public:
  explicit Suspender(Fixture& test)
      : test_(test), suspension_(*test.session), thread_([this] { run(); }) {}
  ~Suspender() {
    ended_ = true;
    thread_.join();
  }

 private:
  static constexpr std::uint64_t kTimeout = 2'000'000, kCalls = 100 * wire::kTicket;

  void run() {
    while (!ended_) {
      suspension_.suspend(kTimeout);
      suspension_.resume();
      const std::uint64_t next = test_.tickets.next() + kCalls;
      unit::comesTrue([&] { return ended_ || test_.tickets.next() >= next; });
    }
  }

  Fixture& test_;
  worker::Suspension suspension_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

/// Threads call random actions in a session of their own. Returns the calls that succeeded.
std::set<CallNumber> attack(const std::map<CallNumber, Action>& known, const Neighbour& neighbour,
                            unsigned seed) {
  Fixture test(neighbour);
  Attacker last(test, 0);
  test.main = last.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0}).handle;
  CHECK(test.main != 0);
  test.description = last.describe();
  test.lasting = last.call(CallNumber::cuMemAlloc_v2, std::size_t{2 * kPiece}).handle;
  CHECK(test.quota.used() == 2 * kPiece);
  CHECK(test.held() == test.contextMemory + 2 * kPiece);
  std::vector<Action> list;
  for (const auto& [number, action] : known) list.push_back(action);
  std::optional<Suspender> suspender(test);
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= kThreads; ++i) {
    threads.emplace_back([&, i] {
      Attacker one(test, seed * kThreads + i);
      one.setCurrent(test.main);
      for (int round = 0; round < kRounds; ++round) list[one.random() % list.size()](one);
    });
  }
  for (std::thread& thread : threads) thread.join();
  suspender.reset();
  const std::set<CallNumber> succeeded = test.succeeded;
  synchronizeAll(last);
  endEstimates(last);
  test.session->pendingFrees.settle();
  test.session->slack.settle();
  // The node provides for the first context, and bears some slack.
  const std::uint64_t slack = std::min(test.session->memory.slack(), worker::SlackAccount::kFree);
  const std::uint64_t held = test.held() - test.contextMemory;
  CHECK(test.quota.used() + slack == held);
  endEverything(last);
  test.session->pools.settle();
  CHECK(last.call(CallNumber::cuCtxDestroy_v2, test.main).status == CUDA_SUCCESS);
  CHECK(test.quota.used() == 0);
  CHECK(test.held() == 0);
  CHECK(test.figures.pinned == 0);
  CHECK(test.session->handles.size() <= 2);  // of the device's own pool, and the description
  return succeeded;
}

// Rare calls succeed some five times in a session, because its quota is soon used up. So there are
// more sessions until each call has succeeded.
TEST_CASE("threads that destroy each other's objects leave the quota exact") {
  const Neighbour neighbour;  // first: it forks before this process has threads and a driver
  const auto known = actions();
  for (std::size_t number = 1; number <= kCallCount; ++number) {
    if (isTried(known, number)) continue;
    FAIL_CHECK(std::string(kCallNames[number]) << " creates or destroys, and is not tried here");
  }
  std::set<CallNumber> missing;
  for (const auto& [number, action] : known) missing.insert(number);
  for (unsigned session = 0; session < kMostSessions && !missing.empty(); ++session) {
    for (const CallNumber number : attack(known, neighbour, session)) missing.erase(number);
  }
  for (const CallNumber number : missing)
    FAIL_CHECK(std::string(kCallNames[static_cast<int>(number)]) << " never succeeded");
}

}  // namespace
