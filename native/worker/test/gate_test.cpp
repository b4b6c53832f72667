// The gate before the simulated driver, with the arbiter's end played by hand: what it lets in,
// what it says, and what happens when streams, contexts and arbiters go.
#include "native/worker/gate/gate.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "native/arbiter/mailbox_file.h"
#include "wire/test/check.h"
#include "wire/wait.h"

namespace {

using arbiter::Grant;
using arbiter::Mailbox;
using worker::Gate;

worker::Driver driver;
CUcontext context = nullptr;
CUdeviceptr memory = 0;
std::atomic<std::uint64_t> waited{0};
constexpr std::size_t kBytes = 4096;

/// A time-out: long enough for any machine.
template <class Condition>
bool comesTrue(Condition condition) {
  constexpr std::uint64_t kPatience = 60'000'000'000;
  for (const auto end = wire::monotonicNanoseconds() + kPatience;
       wire::monotonicNanoseconds() < end; usleep(200)) {
    if (condition()) return true;
  }
  return condition();
}

/// The arbiter's end: one worker, whatever grant the test sets.
class PlayedArbiter {
 public:
  explicit PlayedArbiter(const std::string& path)
      : path_(path), listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strncpy(name.sun_path, path.c_str(), sizeof name.sun_path - 1);
    unlink(path.c_str());
    if (bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
        listen(listener_, 4) != 0)
      std::abort();
  }
  ~PlayedArbiter() {
    close(connection_);
    close(listener_);
    unlink(path_.c_str());
    if (mailbox != nullptr) munmap(mailbox, arbiter::kMailboxBytes);
  }

  Mailbox* mailbox = nullptr;

  /// Lets the worker in and gives it its mailbox.
  void introduce(Grant grant, std::uint32_t version = arbiter::kMailboxVersion) {
    connection_ = accept(listener_, nullptr, nullptr);
    char first[16];
    CHECK(recv(connection_, first, 9, MSG_WAITALL) == 9 &&
          std::memcmp(first, "worker 1\n", 9) == 0);
    const int file = arbiter::createMailbox(mailbox);
    if (file < 0) std::abort();
    mailbox->version = version;
    mailbox->grant = arbiter::nextWord(0, grant);
    mailbox->queueNanoseconds = 2'000'000;
    CHECK(arbiter::sendMailbox(connection_, file));
    close(file);
  }
  /// Lets the worker in and says nothing.
  void hang() { connection_ = accept(listener_, nullptr, nullptr); }
  /// Returns the new word. A worker whose gate opens is not woken for that.
  std::uint32_t set(Grant grant) {
    const std::uint32_t word = arbiter::nextWord(mailbox->grant.load(), grant);
    mailbox->grant.store(word);
    wire::futexWakeAll(mailbox->grant);
    if (grant != Grant::open) send(connection_, "g", 1, MSG_NOSIGNAL);
    return word;
  }
  bool drained(std::uint32_t word) const {
    return comesTrue([&] { return mailbox->drained.load() == word; });
  }
  /// The worker has said that something is new.
  bool hears() const {
    char byte;
    return recv(connection_, &byte, 1, 0) == 1;
  }

 private:
  std::string path_;
  int listener_;
  int connection_ = -1;
};

/// Holds a stream until it is let go.
class Hold {
 public:
  explicit Hold(CUstream stream) {
    CHECK(driver.cuLaunchHostFunc(stream, wait, this) == CUDA_SUCCESS);
  }
  ~Hold() {
    release();
    ended_.wait(false);
  }
  void release() {
    open_ = true;
    open_.notify_all();
  }

 private:
  static void wait(void* hold) {
    auto* self = static_cast<Hold*>(hold);
    self->open_.wait(false);
    self->ended_ = true;
    self->ended_.notify_all();
  }
  std::atomic<bool> open_{false}, ended_{false};
};

CUstream createStream() {
  CUstream stream = nullptr;
  CHECK(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  return stream;
}

/// A program's thread that submits memsets.
class Submitter {
 public:
  explicit Submitter(Gate& gate) : pass(gate) { driver.cuCtxSetCurrent(context); }
  void submit(CUstream stream, std::size_t bytes = kBytes) {
    pass.enter(stream, {bytes});
    CHECK(driver.cuMemsetD8Async(memory, 1, bytes, stream) == CUDA_SUCCESS);
    pass.leave();
  }
  Gate::Pass pass;
};

struct Fixture {
  std::string path;
  PlayedArbiter played;
  Gate gate{driver, waited};
  Submitter submitter{gate};
  explicit Fixture(Grant grant) : path("/tmp/gate-test-" + std::to_string(getpid())), played(path) {
    gate.open(path);
    played.introduce(grant);
    if (grant != Grant::open) return;
    // The page has arrived once it makes a difference: that something runs behind an open gate is
    // seen.
    submitter.submit(nullptr);
    const Hold hold(nullptr);
    CHECK(comesTrue([&] { return played.mailbox->used.load() > 0; }));
  }
};

void testWithoutArbiter() {
  Gate gate(driver, waited);
  Submitter submitter(gate);
  const CUstream stream = createStream();
  for (int i = 0; i < 1000; ++i) submitter.submit(stream);
  CHECK(waited == 0);
  driver.cuStreamDestroy_v2(stream);
}

/// A thread that submits once.
struct Through {
  std::atomic<bool> through{false};
  std::thread thread;
  explicit Through(Gate& gate)
      : thread([this, &gate] {
          Submitter(gate).submit(nullptr);
          through = true;
        }) {}
  ~Through() { thread.join(); }
};

/// Neither without an arbiter, nor before one that is there has spoken, nor when it has gone
/// without a word.
void testNothingPassesBeforeTheFirstWord() {
  const std::string path = "/tmp/gate-test-" + std::to_string(getpid());
  Gate gate(driver, waited);
  gate.open(path);
  const Through early(gate);
  usleep(20'000);
  CHECK(!early.through);
  PlayedArbiter(path).hang();
  usleep(20'000);
  CHECK(!early.through);
  PlayedArbiter played(path);
  played.introduce(Grant::closed);
  CHECK(comesTrue([&] { return played.mailbox->wants.load() == 1; }));
  CHECK(!early.through);
  played.set(Grant::window);
}

/// A session with a share stands at its gate from time to time when the arbiter has gone, and obeys
/// the next one.
void testAShareWithoutArbiter() {
  const std::string path = "/tmp/gate-test-" + std::to_string(getpid());
  Gate gate(driver, waited);
  gate.open(path);
  {
    PlayedArbiter played(path);
    played.introduce(Grant::closed);
    CHECK(played.drained(played.mailbox->grant));
    played.mailbox->shareWithoutArbiter = 500'000;
  }
  Submitter submitter(gate);
  submitter.submit(nullptr);  // not before it has earned something
  const std::uint64_t before = waited;
  CHECK(before > 0);
  CHECK(comesTrue([&] {
    submitter.submit(nullptr);
    return waited > before;
  }));
  PlayedArbiter next(path);
  next.introduce(Grant::closed);
  CHECK(next.drained(next.mailbox->grant));
  const Through late(gate);
  CHECK(comesTrue([&] { return next.mailbox->wants.load() == 1; }));
  CHECK(!late.through);
  next.set(Grant::window);
}

/// In how many contexts of a GPU work goes on after the gate has closed, and that this is too long.
void testAnOverrun() {
  std::atomic<std::uint32_t> overdue{0};
  Fixture f(Grant::closed);
  f.gate.onOverdue([&](std::uint32_t seconds) { overdue = seconds; });
  f.played.set(Grant::window);
  CUcontext second = nullptr;
  Hold first(CU_STREAM_LEGACY);
  f.submitter.submit(CU_STREAM_LEGACY);
  CHECK(driver.cuCtxCreate_v2(&second, 0, 0) == CUDA_SUCCESS);
  f.submitter.pass.contextChanged();
  {
    Hold other(CU_STREAM_LEGACY);
    f.submitter.submit(CU_STREAM_LEGACY);
    f.played.set(Grant::closed);
    CHECK(comesTrue([&] { return f.played.mailbox->busyContexts.load() == 2; }));
    f.played.mailbox->overdue = 7;
    CHECK(comesTrue([&] { return overdue == 7; }));
    CHECK(f.played.mailbox->overdue.load() == 0);
  }
  CHECK(comesTrue([&] { return f.played.mailbox->busyContexts.load() == 1; }));
  first.release();
  CHECK(f.played.drained(f.played.mailbox->grant));
  f.gate.forget(second);
  CHECK(driver.cuCtxDestroy_v2(second) == CUDA_SUCCESS);
  driver.cuCtxSetCurrent(context);
}

void testAClosedGate() {
  Fixture f(Grant::closed);
  CHECK(f.played.drained(f.played.mailbox->grant));
  std::atomic<bool> through{false};
  std::thread thread([&] {
    Submitter submitter(f.gate);
    submitter.submit(nullptr);
    through = true;
  });
  CHECK(comesTrue([&] { return f.played.mailbox->wants.load() == 1; }));
  CHECK(f.played.hears() && !through);
  f.played.set(Grant::window);
  thread.join();
  CHECK(f.played.mailbox->wants.load() == 0 && waited > 0);
  // What ran in the window is over, and after a while the arbiter is told so.
  CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
  f.submitter.submit(nullptr);
  CHECK(f.played.drained(f.played.set(Grant::closed)));
}

/// A window for later: whoever begins to use it says so.
void testStandby() {
  Fixture f(Grant::closed);
  CHECK(f.played.drained(f.played.mailbox->grant));
  CHECK(f.played.hears());  // that it has
  f.played.mailbox->standby = 1;
  f.played.set(Grant::window);
  CHECK(f.played.mailbox->idleSince.load() != 0);
  f.submitter.submit(nullptr);
  CHECK(f.played.mailbox->idleSince.load() == 0 && f.played.mailbox->standby.load() == 0);
  CHECK(f.played.hears());
  CHECK(f.played.drained(f.played.set(Grant::closed)));
}

/// The gate closes, and what is held is waited for.
void testItIsWaitedFor(Fixture& f, Hold& hold) {
  const std::uint32_t word = f.played.set(Grant::closed);
  usleep(20'000);
  CHECK(f.played.mailbox->drained.load() != word);
  hold.release();
  CHECK(f.played.drained(word));
}

/// Whether work paused in the window that ended, once there was some.
void testPace() {
  using arbiter::Pace;
  Fixture f(Grant::open);
  f.submitter.submit(nullptr);
  const auto paceAtTheEnd = [&] {
    f.played.mailbox->pace = static_cast<Pace>(99);
    CHECK(f.played.drained(f.played.set(Grant::closed)));
    return f.played.mailbox->pace.load();
  };
  CHECK(paceAtTheEnd() == Pace::unknown);  // nobody looked while the gate was open
  f.played.set(Grant::window);
  f.submitter.submit(nullptr);
  CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
  usleep(1000);
  f.submitter.submit(nullptr);
  CHECK(paceAtTheEnd() == Pace::pausing);
  f.played.set(Grant::window);
  CHECK(paceAtTheEnd() == Pace::unknown);  // nothing came

  f.played.set(Grant::window);
  f.submitter.submit(nullptr);
  CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
  usleep(1000);
  CHECK(paceAtTheEnd() == Pace::pausing);  // nor anything more
  f.played.set(Grant::window);
  f.submitter.submit(nullptr);
  f.played.set(Grant::open);
  CHECK(paceAtTheEnd() == Pace::unknown);

  // The gate's thread may be late, and miss a window.
  CHECK(comesTrue([&] {
    f.played.set(Grant::window);
    Hold hold(nullptr);
    f.submitter.submit(nullptr);
    usleep(20'000);
    testItIsWaitedFor(f, hold);
    return f.played.mailbox->pace.load() == Pace::steady;
  }));

  Fixture late(Grant::window);
  late.played.mailbox->pace = Pace::steady;
  CHECK(late.played.drained(late.played.set(Grant::closed)));
  CHECK(late.played.mailbox->pace.load() == Pace::unknown);
}

/// Work of the time when the gate was open, on streams of every kind, is waited for.
void testWorkFromBefore(CUstream stream) {
  Fixture f(Grant::open);
  Hold hold(stream);
  f.submitter.submit(stream);
  testItIsWaitedFor(f, hold);
}

/// The same where the gate was open for a while, of which its thread, asleep with nothing to do,
/// heard nothing.
void testWorkFromAnOpenGateInBetween() {
  Fixture f(Grant::open);
  const CUstream stream = createStream();
  f.submitter.submit(stream);
  CHECK(f.played.drained(f.played.set(Grant::closed)));
  f.played.set(Grant::window);
  CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
  usleep(20'000);
  f.played.set(Grant::open);
  Hold hold(stream);
  f.submitter.submit(stream);
  testItIsWaitedFor(f, hold);
  f.gate.forget(stream);
  driver.cuStreamDestroy_v2(stream);
}

/// What runs behind an open gate is counted for as long as it runs, and a short piece now and then
/// for little.
void testTimeBehindAnOpenGate() {
  Fixture f(Grant::open);
  const CUstream stream = createStream();
  const auto used = [&] { return f.played.mailbox->used.load(); };
  constexpr std::uint64_t kMillisecond = 1'000'000,
                          kLongestInterval =
                              100 * kMillisecond;  // of a thread that is not woken in time
  const auto restsAgain = [&] {
    const std::uint64_t before = used();
    usleep(60'000);
    return used() == before;
  };
  CHECK(comesTrue(restsAgain));
  std::uint64_t before = used(), begin = wire::monotonicNanoseconds();
  f.submitter.submit(stream);
  {
    const Hold hold(stream);
    CHECK(comesTrue([&] { return used() >= before + 500 * kMillisecond; }));
  }
  CHECK(used() - before <= wire::monotonicNanoseconds() - begin + kLongestInterval);
  CHECK(comesTrue(restsAgain));
  before = used();
  begin = wire::monotonicNanoseconds();
  for (int i = 0; i < 20; ++i, usleep(30'000)) f.submitter.submit(stream);
  CHECK(used() - before < (wire::monotonicNanoseconds() - begin) / 2);
  f.gate.forget(stream);
  driver.cuStreamDestroy_v2(stream);
}

/// However many streams a program has, none is forgotten.
void testManyStreams() {
  Fixture f(Grant::open);
  std::vector<CUstream> streams(200);
  for (CUstream& stream : streams) stream = createStream();
  Hold hold(streams[100]);
  for (const CUstream stream : streams) f.submitter.submit(stream);
  testItIsWaitedFor(f, hold);
  for (const CUstream stream : streams) f.gate.forget(stream), driver.cuStreamDestroy_v2(stream);
}

/// A stream that is destroyed while its work goes on is not asked for any more.
void testADestroyedStream() {
  Fixture f(Grant::open);
  const CUstream stream = createStream();
  Hold hold(stream);
  f.submitter.submit(stream);
  f.gate.forget(stream);
  driver.cuStreamDestroy_v2(stream);
  CHECK(f.played.drained(f.played.set(Grant::closed)));
}

void testADestroyedContext() {
  Fixture f(Grant::open);
  CUcontext other = nullptr;
  CHECK(driver.cuCtxCreate_v2(&other, 0, 0) == CUDA_SUCCESS);
  f.submitter.pass.contextChanged();
  f.played.set(Grant::window);
  f.submitter.submit(nullptr);
  f.gate.forget(other);
  CHECK(driver.cuCtxDestroy_v2(other) == CUDA_SUCCESS);
  driver.cuCtxSetCurrent(context);
  f.submitter.pass.contextChanged();
  f.submitter.submit(nullptr);
  CHECK(f.played.drained(f.played.set(Grant::closed)));
}

/// A program with a stream on each of two GPUs, the second of which is current. Nothing gets done
/// there until it is let go; the first one has been given work.
struct TwoGpus {
  Fixture f{Grant::open};
  CUcontext second = nullptr;
  CUstream streams[2]{createStream()};
  std::unique_ptr<Hold> holds[2];

  void start() {
    holds[0] = std::make_unique<Hold>(streams[0]);
    f.submitter.submit(streams[0]);
    CHECK(driver.cuCtxCreate_v2(&second, 0, 1) == CUDA_SUCCESS);
    f.submitter.pass.contextChanged();
    streams[1] = createStream();
    holds[1] = std::make_unique<Hold>(streams[1]);
  }
  ~TwoGpus() {
    for (auto& hold : holds) hold.reset();
    f.gate.forget(second);
    CHECK(driver.cuCtxDestroy_v2(second) == CUDA_SUCCESS);
    driver.cuCtxSetCurrent(context);
    f.gate.forget(streams[0]);
    driver.cuStreamDestroy_v2(streams[0]);
  }
};

/// The next piece of work of the first GPU waits while both have work.
void testNoMoreIsLetIn(TwoGpus& gpus, std::uint32_t word) {
  Fixture& f = gpus.f;
  std::atomic<bool> through{false};
  std::thread thread([&] {
    Submitter submitter(f.gate);
    submitter.submit(gpus.streams[0]);
    through = true;
  });
  CHECK(comesTrue([&] { return f.played.mailbox->wants.load() == 1; }));
  usleep(20'000);  // longer than anything is waited for
  CHECK(!through && f.played.mailbox->drained.load() != word);
  for (auto& hold : gpus.holds) hold->release();
  CHECK(f.played.drained(word));
  f.played.set(Grant::window);
  thread.join();
}

/// What one GPU was given may wait for what another is about to be given: that is let in although
/// the gate has closed, and no more than that.
void testTheOtherGpuCatchesUp() {
  TwoGpus gpus;
  gpus.f.played.set(Grant::window);
  gpus.start();
  const std::uint32_t word = gpus.f.played.set(Grant::closed);
  gpus.f.submitter.submit(gpus.streams[1]);  // else it would not come back
  testNoMoreIsLetIn(gpus, word);
}

/// The same where the gate closes for the first time, so that nothing was counted: what stands
/// there is let in once it shows that the other GPU gets nothing done. From then on it is counted
/// rightly.
void testThePartedAreBroughtTogether() {
  TwoGpus gpus;
  gpus.start();
  const std::uint32_t word = gpus.f.played.set(Grant::closed);
  gpus.f.submitter.submit(gpus.streams[1]);
  testNoMoreIsLetIn(gpus, word);
}

/// The same where other work stands before that for which the first GPU waits.
void testTheAwaitedStandsBehindOthers() {
  TwoGpus gpus;
  gpus.start();
  gpus.f.submitter.submit(nullptr);  // the second GPU is known, and has nothing to do
  const std::uint32_t word = gpus.f.played.set(Grant::closed);
  driver.cuCtxSetCurrent(context);
  gpus.f.submitter.pass.contextChanged();
  gpus.f.submitter.submit(gpus.streams[0]);
  gpus.holds[0]->release();
  CHECK(gpus.f.played.drained(word));
}

/// In a window no more is let in than the device can do in a while; work that is stuck does not
/// stop the program for ever.
void testAFullQueue() {
  Fixture f(Grant::open);
  f.played.set(Grant::window);
  const CUstream stream = createStream();
  std::atomic<int> submitted{0};
  std::thread thread;
  {
    Hold hold(stream);
    thread = std::thread([&] {
      Submitter submitter(f.gate);
      for (int i = 0; i < 100; ++i)
        submitter.submit(stream, 4000 + i), ++submitted;  // each one never seen before
    });
    CHECK(comesTrue(
        [&] { return submitted.load() >= 8; }));  // let in one by one, although nothing gets done
    CHECK(submitted.load() < 100);
  }
  thread.join();
  for (int i = 0; i < 2000; ++i) f.submitter.submit(stream);
  CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
  CHECK(driver.cuStreamQuery(stream) == CUDA_SUCCESS);
  CHECK(f.played.drained(f.played.set(Grant::closed)));
  f.gate.forget(stream);
  driver.cuStreamDestroy_v2(stream);
}

/// Work that would still be there when one that goes first is expected waits until that has come or
/// is late; work too long to be held does not.
void testAReservation() {
  Fixture f(Grant::open);
  f.played.set(Grant::window);
  for (int i = 0; i < 2; ++i) {  // how long it takes is known from then on
    f.submitter.submit(nullptr);
    CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
  }
  constexpr std::uint64_t kLong = 600'000'000'000;
  const std::uint64_t now = wire::monotonicNanoseconds();
  f.played.mailbox->reservedFrom = now + kLong;
  f.played.mailbox->reservedUntil = now + 2 * kLong;
  f.played.mailbox->longestHeld = 1'000'000'000;
  f.submitter.submit(nullptr);  // is done long before
  f.played.mailbox->reservedFrom = now;
  f.played.mailbox->longestHeld = 1;
  f.submitter.submit(nullptr);
  f.played.mailbox->longestHeld = 1'000'000'000;
  std::atomic<bool> there{false}, through{false};
  std::thread thread([&] {
    Submitter submitter(f.gate);
    there = true;
    submitter.submit(nullptr);
    through = true;
  });
  CHECK(comesTrue([&] { return there.load(); }));
  usleep(50'000);
  CHECK(!through);
  f.played.mailbox->reservedUntil = wire::monotonicNanoseconds();
  thread.join();
  CHECK(f.played.drained(f.played.set(Grant::closed)));
}

/// A thread between enter() and leave() may submit yet.
void testSomeoneInside() {
  Fixture f(Grant::open);
  f.submitter.pass.enter(nullptr, {});
  const std::uint32_t word = f.played.set(Grant::closed);
  usleep(20'000);
  CHECK(f.played.mailbox->drained.load() != word);
  f.submitter.pass.leave();
  CHECK(f.played.drained(word));
}

void testTheArbiterDies() {
  const std::string path = "/tmp/gate-test-" + std::to_string(getpid());
  Gate gate(driver, waited);
  gate.open(path);
  for (int death = 0; death < 3; ++death) {
    auto played = std::make_unique<PlayedArbiter>(path);
    played->introduce(Grant::closed);
    CHECK(played->drained(played->mailbox->grant));
    std::thread waiting([&] { Submitter(gate).submit(nullptr); });
    CHECK(comesTrue([&] { return played->mailbox->wants.load() == 1; }));
    played.reset();
    waiting.join();
    Submitter(gate).submit(nullptr);  // nobody there: open
  }
}

void testAnotherVersion() {
  const std::string path = "/tmp/gate-test-" + std::to_string(getpid());
  PlayedArbiter played(path);
  Gate gate(driver, waited);
  gate.open(path);
  played.introduce(Grant::closed, arbiter::kMailboxVersion + 1);
  usleep(20'000);
  Submitter(gate).submit(nullptr);  // a page that cannot be read limits nobody
}

void testTimedEvents() {
  Fixture f(Grant::open);
  f.played.set(Grant::window);
  CUevent timed = nullptr, untimed = nullptr;
  CHECK(driver.cuEventCreate(&timed, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
  CHECK(driver.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  f.gate.created(timed, CU_EVENT_DEFAULT);
  f.gate.created(untimed, CU_EVENT_DISABLE_TIMING);
  f.gate.recorded(untimed);
  CHECK(f.played.mailbox->timedRecord.load() == 0);
  f.gate.recorded(timed);
  CHECK(f.played.mailbox->timedRecord.load() != 0);
  driver.cuEventDestroy_v2(timed);
  driver.cuEventDestroy_v2(untimed);
}

/// Many threads, and a gate that opens and closes as fast as it can.
void testAStorm() {
  Fixture f(Grant::open);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Submitter submitter(f.gate);
      const CUstream stream = createStream();
      for (int n = 0; !stop; ++n) submitter.submit(n % 3 == 0 ? CU_STREAM_PER_THREAD : stream);
      driver.cuStreamSynchronize(stream);
      f.gate.forget(stream);
      driver.cuStreamDestroy_v2(stream);
    });
  }
  for (int i = 0; i < 300; ++i) {
    const std::uint32_t word = f.played.set(Grant::closed);
    if (i % 3 == 0) CHECK(f.played.drained(word));
    f.played.set(i % 2 == 0 ? Grant::window : Grant::open);
    usleep(500);
  }
  stop = true;
  f.played.set(Grant::open);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int, char** arguments) {
  setenv("NVIDIA_VIRTUAL_SIMULATED_GPUS", "2", 1);
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || !worker::load(library, driver))
    return std::fprintf(stderr, "no driver at %s\n", arguments[1]), 1;
  CHECK(driver.cuInit(0) == CUDA_SUCCESS);
  CHECK(driver.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  CHECK(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(driver.cuMemAlloc_v2(&memory, 2 * kBytes) == CUDA_SUCCESS);
  testWithoutArbiter();
  testNothingPassesBeforeTheFirstWord();
  testAShareWithoutArbiter();
  testAnOverrun();
  testAClosedGate();
  testStandby();
  testPace();
  testWorkFromBefore(nullptr);
  testWorkFromBefore(CU_STREAM_LEGACY);
  testWorkFromBefore(CU_STREAM_PER_THREAD);
  const CUstream stream = createStream();
  testWorkFromBefore(stream);
  driver.cuStreamDestroy_v2(stream);
  testWorkFromAnOpenGateInBetween();
  testTimeBehindAnOpenGate();
  testManyStreams();
  testADestroyedStream();
  testADestroyedContext();
  testTheOtherGpuCatchesUp();
  testThePartedAreBroughtTogether();
  testTheAwaitedStandsBehindOthers();
  testAFullQueue();
  testAReservation();
  testSomeoneInside();
  testTheArbiterDies();
  testAnotherVersion();
  testTimedEvents();
  testAStorm();
  return wire::test::checkedResult();
}
