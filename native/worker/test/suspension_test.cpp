// A session is suspended and goes on, with the simulated driver: calls before, during and after,
// work under way, work that does not end, and the commands that gpu-proxy sends.
#include "native/worker/session/suspension.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "native/worker/session/control.h"
#include "native/worker/test/command.h"
#include "native/worker/test/ring_client.h"
#include "test/unit/waiting.h"

namespace {

using unit::comesTrue;
using worker::test::awaitAnswer;
using worker::test::kMiB;
using worker::test::Reply;

constexpr std::uint64_t kShort = 20'000'000, kLong = 60'000'000'000;
constexpr const char* kWorkRuns = "its work on the GPU does not end";
constexpr const char* kCallRuns = "one of its calls does not end";

/// A session with one context, and the order of its calls.
struct Suspended : worker::test::SimulatedSession {
  wire::TicketCounter tickets;
  worker::Suspension suspension{session};

  Suspended() : SimulatedSession(1024 * kMiB) { session.driver.cuStreamCreate(&stream, 0); }
  ~Suspended() { session.driver.cuStreamDestroy_v2(stream); }

  CUstream stream = nullptr;  ///< of the test, which the client does not know
};

/// A thread of the program, with the session's context.
class Program {
 public:
  explicit Program(Suspended& test) : test_(test), ring_(test.session) {
    CHECK(call(CallNumber::cuCtxSetCurrent, test.context).status == CUDA_SUCCESS);
  }

  template <class... T>
  Reply call(CallNumber number, T... arguments) {
    return ring_.send(number, test_.tickets.take(), 0,
                      [&](wire::Encoder& frame) { (frame.put(arguments), ...); });
  }
  /// Allocates and frees memory, and fills it in between.
  bool works() {
    const Reply made = call(CallNumber::cuMemAlloc_v2, std::uint64_t{4096});
    return made.status == CUDA_SUCCESS &&
           call(CallNumber::cuMemsetD32Async, made.handle, 7u, std::uint64_t{1024},
                std::uint64_t{0})
                   .status == CUDA_SUCCESS &&
           call(CallNumber::cuMemFree_v2, made.handle).status == CUDA_SUCCESS;
  }
  worker::test::RingClient& ring() { return ring_; }

 private:
  Suspended& test_;
  worker::test::RingClient ring_;
};

/// Holds the test's stream until release(), as a kernel that does not end, and calls `last` then.
class Endless {
 public:
  explicit Endless(const Suspended& test, std::function<void()> last = {})
      : last_(std::move(last)) {
    CHECK(test.session.driver.cuLaunchHostFunc(test.stream, wait, this) == CUDA_SUCCESS);
  }
  ~Endless() { release(); }
  Endless(const Endless&) = delete;
  Endless& operator=(const Endless&) = delete;

  void release() {
    ended_ = true;
    ended_.notify_all();
    CHECK(comesTrue([this] { return done_.load(); }));
  }

 private:
  static void wait(void* self) {
    static_cast<Endless*>(self)->ended_.wait(false);
    if (const auto& last = static_cast<Endless*>(self)->last_) last();
    static_cast<Endless*>(self)->done_ = true;
  }
  std::function<void()> last_;
  std::atomic<bool> ended_{false}, done_{false};
};

TEST_CASE_FIXTURE(Suspended, "a call waits while the session is suspended, and runs after") {
  Program program(*this);
  CHECK(program.works());
  CHECK(suspension.suspend(kLong).empty());
  std::atomic<bool> worked{false};
  unit::Waiter thread([&] { worked = program.works(); });
  CHECK(thread.waits());
  CHECK(quota.used() == 0);
  CHECK(suspension.suspend(kLong).empty());
  CHECK_FALSE(thread.ended());
  suspension.resume();
  suspension.resume();
  thread.join();
  CHECK(worked);
}

TEST_CASE_FIXTURE(Suspended, "many threads stop and go on, and each call is executed once") {
  constexpr int kThreads = 8, kRounds = 200;
  std::atomic<int> worked{0}, running{kThreads};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Program program(*this);
      for (int round = 0; round < kRounds; ++round) worked += program.works() ? 1 : 0;
      --running;
    });
  }
  int times = 0;
  for (; running > 0; ++times) {
    CHECK(suspension.suspend(kLong).empty());
    CHECK(session.driver.cuStreamQuery(CU_STREAM_LEGACY) == CUDA_SUCCESS);
    const int before = worked;
    std::this_thread::yield();
    // Replies of calls that were executed before may still be on their way.
    CHECK(worked - before <= kThreads);
    suspension.resume();
    CHECK(comesTrue([&] { return worked > before + kThreads || running == 0; }));
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(worked == kThreads * kRounds);
  CHECK(times > 0);
  CHECK(quota.used() == 0);
}

TEST_CASE_FIXTURE(Suspended, "a program that floods its ring while suspended waits for room") {
  constexpr int kFrames = 100'000;  // more than a ring holds
  Program program(*this);
  CHECK(suspension.suspend(kLong).empty());
  unit::Waiter flood([&] {
    for (int i = 0; i < kFrames; ++i)
      program.ring().publish(CallNumber::passTicket, tickets.take());
  });
  CHECK(flood.waits());
  suspension.resume();
  flood.join();
  CHECK(program.works());
}

TEST_CASE_FIXTURE(Suspended, "work under way ends before the session is suspended") {
  Endless work(*this);
  std::string sentence = "none";
  unit::Waiter suspending([&] { sentence = suspension.suspend(kLong); });
  CHECK(suspending.waits());
  work.release();
  suspending.join();
  CHECK(sentence.empty());
  suspension.resume();
}

TEST_CASE_FIXTURE(Suspended, "beside work that does not end, the session goes on unchanged") {
  Program program(*this);
  Endless work(*this);
  CHECK(suspension.suspend(kShort) == kWorkRuns);
  CHECK(program.call(CallNumber::cuMemAlloc_v2, std::uint64_t{4096}).status == CUDA_SUCCESS);
  CHECK(suspension.suspend(kShort) == kWorkRuns);  // the first attempt still waits in the driver
  work.release();
  CHECK(comesTrue([&] { return suspension.suspend(kLong).empty(); }));
  suspension.resume();
}

TEST_CASE_FIXTURE(Suspended, "beside a call that does not end, the session goes on unchanged") {
  Program program(*this), other(*this);
  std::optional<Endless> work(std::in_place, *this);
  std::atomic<CUresult> synchronized{CUDA_ERROR_UNKNOWN};
  unit::Waiter waiting([&] { synchronized = program.call(CallNumber::cuCtxSynchronize).status; });
  CHECK(waiting.waits());
  // The turn comes after that of the call that waits.
  CHECK(other.call(CallNumber::cuMemAlloc_v2, std::uint64_t{4096}).status == CUDA_SUCCESS);
  CHECK(suspension.suspend(kShort) == kCallRuns);
  CHECK(other.call(CallNumber::cuMemAlloc_v2, std::uint64_t{4096}).status == CUDA_SUCCESS);
  work.reset();
  waiting.join();
  CHECK(synchronized == CUDA_SUCCESS);
  CHECK(suspension.suspend(kLong).empty());
  suspension.resume();
}

TEST_CASE_FIXTURE(Suspended, "a thread that waits for its turn delays nothing") {
  Program early(*this), late(*this);
  const std::uint64_t first = tickets.take(), second = tickets.take();
  late.ring().publish(CallNumber::passTicket, second);
  CHECK(suspension.suspend(kLong).empty());
  early.ring().publish(CallNumber::passTicket, first);
  suspension.resume();
  CHECK(late.works());
}

TEST_CASE_FIXTURE(Suspended, "a capture is not ended, and the session is suspended after it") {
  Program program(*this);
  const std::uint64_t own =
      program.call(CallNumber::cuStreamCreate, 1u /* does not wait for others */).handle;
  CHECK(program.call(CallNumber::cuStreamBeginCapture_v2, own, CU_STREAM_CAPTURE_MODE_GLOBAL)
            .status == CUDA_SUCCESS);
  CHECK(suspension.suspend(kShort) == "it captures work into a graph");
  std::string sentence = "none";
  unit::Waiter suspending([&] { sentence = suspension.suspend(kLong); });
  CHECK(suspending.waits());
  CHECK(program.call(CallNumber::cuStreamEndCapture, own).status == CUDA_SUCCESS);
  suspending.join();
  CHECK(sentence.empty());
  suspension.resume();
}

// The worker could miss a rule of the driver, which then refuses to wait.
TEST_CASE_FIXTURE(Suspended, "a session does not stop while the driver captures") {
  const CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  CHECK(session.driver.cuStreamBeginCapture_v2(stream, relaxed) == CUDA_SUCCESS);
  CHECK(!session.captures.any());
  CHECK(suspension.suspend(kLong) == kWorkRuns);
  CUgraph graph = nullptr;
  session.driver.cuStreamEndCapture(stream, &graph);
  CHECK(suspension.suspend(kLong).empty());
  suspension.resume();
}

TEST_CASE_FIXTURE(Suspended, "a context that an attempt still waits for is destroyed after that") {
  Program program(*this);
  const Reply made = program.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
  auto* const other =
      static_cast<CUcontext>(session.handles.find(wire::HandleKind::context, made.handle));
  CUstream held = nullptr;
  CUcontext popped = nullptr;
  session.driver.cuCtxPushCurrent_v2(other);
  session.driver.cuStreamCreate(&held, 0);
  session.driver.cuCtxPopCurrent_v2(&popped);
  std::swap(held, stream);
  std::optional<Endless> work(std::in_place, *this);
  CHECK(suspension.suspend(kShort) == kWorkRuns);
  std::atomic<CUresult> destroyed{CUDA_ERROR_UNKNOWN};
  unit::Waiter destroying(
      [&] { destroyed = program.call(CallNumber::cuCtxDestroy_v2, made.handle).status; });
  CHECK(destroying.waits());
  work.reset();
  std::swap(held, stream);
  destroying.join();
  CHECK(destroyed == CUDA_SUCCESS);
}

/// Managed memory on the GPU, and the client's thread that answers accesses to it.
class Managed {
 public:
  explicit Managed(Suspended& test) : program_(test), answers_(test.session) {
    REQUIRE(wire::reserve(kWindow));
    test.session.shared.window = kWindow;
    test.session.shared.put(1, worker::test::memoryFile("", kMiB, F_SEAL_SHRINK));
    CHECK(
        program_.call(CallNumber::allocateManaged, std::uint64_t{1}, kWindow.begin, kMiB).status ==
        CUDA_SUCCESS);
    const auto onGpu = static_cast<std::uint32_t>(wire::ManagedPlace::gpu);
    CHECK(answers_
              .send(CallNumber::placeManaged, 0, 0,
                    [](wire::Encoder& frame) {
                      frame.put(kWindow.begin);
                      frame.put(std::uint32_t{0});
                    })
              .handle == onGpu);
  }
  ~Managed() {
    CHECK(program_.call(CallNumber::freeManaged, kWindow.begin).status == CUDA_SUCCESS);
    munmap(reinterpret_cast<void*>(kWindow.begin), kWindow.end - kWindow.begin);
  }

  /// Brings a page back to the program. False if it did not come.
  bool bringBack() {
    return answers_
               .send(CallNumber::moveManagedToHost, 0, 0,
                     [](wire::Encoder& frame) {
                       frame.put(kWindow.begin);
                       frame.put(wire::AddressRange{kWindow.begin, kWindow.begin + 4096});
                     })
               .status == CUDA_SUCCESS;
  }

 private:
  static constexpr wire::AddressRange kWindow{0x5502'0000'0000, 0x5502'4000'0000};
  Program program_;
  worker::test::RingClient answers_;
};

TEST_CASE_FIXTURE(Suspended, "pages come back until work ends that waits for one, and then wait") {
  Managed memory(*this);
  Program program(*this), other(*this);
  bool came = false;
  std::optional<Endless> work(std::in_place, *this, [&] { came = memory.bringBack(); });
  std::optional<unit::Waiter> synchronizing;
  SUBCASE("beside a call that waits for the work") {
    synchronizing.emplace(
        [&] { CHECK(other.call(CallNumber::cuCtxSynchronize).status == CUDA_SUCCESS); });
    CHECK(synchronizing->waits());
  }
  SUBCASE("alone") {}
  std::string sentence = "none";
  unit::Waiter suspending([&] { sentence = suspension.suspend(kLong); });
  CHECK(comesTrue([&] {
    program.ring().publish(CallNumber::passTicket, tickets.take());
    return figures.waiting.load() == 1;  // calls are stopped
  }));
  work.reset();
  suspending.join();
  CHECK(came);
  CHECK(sentence.empty());
  std::atomic<bool> next{false};
  unit::Waiter access([&] { next = memory.bringBack(); });
  CHECK(comesTrue([&] { return figures.waiting.load() == 2; }));
  CHECK_FALSE(next);
  suspension.resume();
  access.join();
  CHECK(next);
}

TEST_CASE_FIXTURE(Suspended, "a client that brings pages back without end delays nothing") {
  Managed memory(*this);
  std::atomic<bool> ends{false};
  std::thread accesses([&] {
    while (!ends) CHECK(memory.bringBack());
  });
  for (int times = 0; times < 20; ++times) {
    CHECK(suspension.suspend(kLong).empty());
    suspension.resume();
  }
  {
    Endless work(*this);
    CHECK(suspension.suspend(kShort) == kWorkRuns);
  }
  ends = true;
  accesses.join();
}

TEST_CASE("a client that ends while suspended ends its session at once") {
  worker::Report report{-1};
  worker::Quota quota;
  worker::Figures figures;
  worker::Output output;
  worker::Session session(-1, report, quota, figures, output, {});  // without a driver
  worker::Suspension suspension(session);
  worker::test::RingClient client(session);
  CHECK(suspension.suspend(kLong).empty());
  client.publish(CallNumber::passTicket, wire::kTicket);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  CHECK(session.serve(pidfd, {}) == "client exited");
  close(pidfd);
  waitpid(child, nullptr, 0);
  suspension.resume();  // the worker's process would exit
}

/// gpu-proxy's end of the socket for commands.
class Commands {
 public:
  explicit Commands(worker::Session& session) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
    socket_ = ends[0];
    control_ = new worker::Control(ends[1], session);  // lives with its thread
  }
  ~Commands() { CHECK(ask("resume") == "done\n"); }

  void serve() { control_->serve(); }
  int send(const std::string& text) const { return worker::test::sendCommand(socket_, text); }
  std::string ask(const std::string& text) const { return awaitAnswer(send(text)); }

 private:
  int socket_;
  worker::Control* control_;
};

TEST_CASE_FIXTURE(Suspended, "gpu-proxy suspends and resumes a session by its socket") {
  Commands commands(session);
  commands.serve();
  Program program(*this);
  CHECK(commands.ask("leave 1") == "error it is not suspended\n");
  CHECK(commands.ask("suspend 60000") == "done 0\n");
  for (const char* text : {"leave 1", "enter 1"}) CHECK(commands.ask(text) == "done 0\n");
  std::atomic<bool> worked{false};
  unit::Waiter thread([&] { worked = program.works(); });
  CHECK(thread.waits());
  CHECK(commands.ask("resume") == "done\n");
  thread.join();
  CHECK(worked);
  {
    Endless work(*this);
    CHECK(commands.ask("suspend 20") == "error " + std::string(kWorkRuns) + "\n");
  }
  CHECK(comesTrue([&] { return commands.ask("suspend 60000") == "done 0\n"; }));
  CHECK(commands.ask("resume") == "done\n");
  for (const char* text : {"", " ", "move", "leave", "suspend", "suspend x", "suspend 1 2",
                           "suspend -1", "suspend 99999999999"})
    CHECK(commands.ask(text) ==
          "error its worker is of an older build and does not know the command\n");
  std::signal(SIGPIPE, SIG_IGN);  // as in the worker
  close(commands.send("move"));   // gpu-proxy is killed before the answer
  CHECK(program.works());
}

TEST_CASE_FIXTURE(Suspended, "commands that came before the session began precede its frames") {
  Commands commands(session);
  const int suspending = commands.send("suspend 60000");
  commands.serve();
  CHECK(awaitAnswer(suspending) == "done 0\n");
  Program* program = nullptr;
  unit::Waiter thread([&] { program = new Program(*this); });  // makes a call
  CHECK(thread.waits());
  CHECK(commands.ask("resume") == "done\n");
  thread.join();
  CHECK(program->works());
  delete program;
}

}  // namespace
