// The gate with the simulated driver and an arbiter that the test plays: what it admits, what it
// reports, and what happens when streams, contexts and arbiters end.
#include "native/worker/gate/gate.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "native/worker/test/played_arbiter.h"
#include "test/unit/program.h"
#include "test/unit/waiting.h"

namespace {

using arbiter::Grant;
using unit::comesTrue;
using worker::Gate;
using worker::test::PlayedArbiter;

worker::Driver driver;
CUcontext context = nullptr;
CUdeviceptr memory = 0;
std::atomic<std::uint64_t> waited{0};
worker::Captures captures{driver};
constexpr std::size_t kBytes = 4096;
/// Stands for the stream that captures.
const CUstream kCapturing = reinterpret_cast<CUstream>(~std::uintptr_t{0});

/// Loads the driver once, and makes the primary context of the first of two GPUs current.
struct WithDriver {
  WithDriver() {
    static const bool loaded = [] {
      setenv("NVIDIA_VIRTUAL_SIMULATED_GPUS", "2", 1);
      const char* path = unit::argument(0, "the path of the simulated driver");
      REQUIRE(worker::load(dlopen(path, RTLD_NOW | RTLD_LOCAL), driver));
      REQUIRE(driver.cuInit(0) == CUDA_SUCCESS);
      REQUIRE(driver.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
      REQUIRE(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
      REQUIRE(driver.cuMemAlloc_v2(&memory, 2 * kBytes) == CUDA_SUCCESS);
      return true;
    }();
    CHECK(loaded);
  }
};

/// Holds a stream until release().
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
  Gate gate{driver, waited, captures};
  Submitter submitter{gate};
  explicit Fixture(Grant grant) : path("/tmp/gate-test-" + std::to_string(getpid())), played(path) {
    gate.open(path);
    played.introduce(grant);
    if (grant != Grant::open) return;
    // The mailbox has arrived once work behind the open gate is counted in it.
    submitter.submit(nullptr);
    const Hold hold(nullptr);
    CHECK(comesTrue([&] { return played.mailbox->used.load() > 0; }));
  }
};

TEST_CASE_FIXTURE(WithDriver, "without an arbiter everything passes") {
  Gate gate(driver, waited, captures);
  Submitter submitter(gate);
  const CUstream stream = createStream();
  for (int i = 0; i < 1000; ++i) submitter.submit(stream);
  CHECK(waited == 0);
  driver.cuStreamDestroy_v2(stream);
}

/// A thread that submits once.
struct Through : unit::Waiter {
  explicit Through(Gate& gate, CUstream stream = nullptr)
      : Waiter([&gate, stream] { Submitter(gate).submit(stream); }) {}
};

// Neither without an arbiter, nor before its first grant, nor when it has gone without one.
TEST_CASE_FIXTURE(WithDriver, "nothing passes before the first grant") {
  const std::string path = "/tmp/gate-test-" + std::to_string(getpid());
  Gate gate(driver, waited, captures);
  gate.open(path);
  const Through early(gate);
  CHECK(early.waits());
  PlayedArbiter(path).hang();
  PlayedArbiter played(path);
  played.introduce(Grant::closed);
  CHECK(comesTrue([&] { return played.mailbox->wants.load() == 1; }));
  CHECK(!early.ended());
  played.set(Grant::window);
}

// It obeys the next arbiter.
TEST_CASE_FIXTURE(WithDriver, "a session with a share limits itself while the arbiter is away") {
  const std::string path = "/tmp/gate-test-" + std::to_string(getpid());
  Gate gate(driver, waited, captures);
  gate.open(path);
  {
    PlayedArbiter played(path);
    played.introduce(Grant::closed);
    CHECK(played.drained(played.mailbox->grant));
    played.mailbox->shareWithoutArbiter = 500'000;
  }
  Submitter submitter(gate);
  submitter.submit(nullptr);  // waits until the share is earned
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
  CHECK(!late.ended());
  next.set(Grant::window);
}

TEST_CASE_FIXTURE(WithDriver, "an overrun is reported with the number of busy contexts") {
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

TEST_CASE_FIXTURE(WithDriver, "work waits at a closed gate") {
  Fixture f(Grant::closed);
  CHECK(f.played.drained(f.played.mailbox->grant));
  {
    const Through late(f.gate);
    CHECK(comesTrue([&] { return f.played.mailbox->wants.load() == 1; }));
    CHECK(f.played.hears());
    CHECK(!late.ended());
    f.played.set(Grant::window);
  }
  CHECK(f.played.mailbox->wants.load() == 0);
  CHECK(waited > 0);
  // The work of the window is over, and the arbiter is told so.
  CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
  f.submitter.submit(nullptr);
  CHECK(f.played.drained(f.played.set(Grant::closed)));
}

TEST_CASE_FIXTURE(WithDriver, "the first work of a standby window is reported") {
  Fixture f(Grant::closed);
  CHECK(f.played.drained(f.played.mailbox->grant));
  CHECK(f.played.hears());  // the drain
  f.played.mailbox->standby = 1;
  f.played.set(Grant::window);
  CHECK(f.played.mailbox->idleSince.load() != 0);
  f.submitter.submit(nullptr);
  CHECK(f.played.mailbox->idleSince.load() == 0);
  CHECK(f.played.mailbox->standby.load() == 0);
  CHECK(f.played.hears());
  CHECK(f.played.drained(f.played.set(Grant::closed)));
}

TEST_CASE_FIXTURE(WithDriver, "a thread that waits for its work begins a pause in its window") {
  Fixture f(Grant::open);
  f.submitter.pass.beginWait();
  f.submitter.pass.endWait();
  CHECK(f.played.mailbox->waitedAt == 0);  // there is no window
  f.played.set(Grant::window);
  f.submitter.submit(nullptr);
  const std::uint64_t submitted = f.played.mailbox->submittedAt;
  f.submitter.pass.beginWait();
  CHECK(f.played.mailbox->submittedAt == submitted - arbiter::kPauseNanoseconds);
  CHECK(f.played.mailbox->waitedAt == 0);  // its work runs
  f.submitter.pass.endWait();
  CHECK(f.played.mailbox->waitedAt > submitted);

  f.submitter.submit(nullptr);
  Submitter other(f.gate);
  other.submit(nullptr);
  const std::uint64_t last = f.played.mailbox->submittedAt;
  CHECK(last > f.played.mailbox->waitedAt);
  f.submitter.pass.beginWait();  // the other thread's work came later
  f.submitter.pass.endWait();
  CHECK(f.played.mailbox->submittedAt == last);
  other.pass.beginWait();
  f.submitter.submit(nullptr);
  other.pass.endWait();
  CHECK(f.played.mailbox->waitedAt < f.played.mailbox->submittedAt);
}

/// The gate closes, and drains only after the held work.
void drainsAfter(Fixture& f, Hold& hold) {
  const std::uint32_t word = f.played.set(Grant::closed);
  CHECK(f.played.staysUndrained(word));
  hold.release();
  CHECK(f.played.drained(word));
}

TEST_CASE_FIXTURE(WithDriver, "a drain reports whether work paused in the window") {
  using arbiter::Pace;
  Fixture f(Grant::open);
  f.submitter.submit(nullptr);
  const auto paceAtTheEnd = [&] {
    f.played.mailbox->pace = static_cast<Pace>(99);
    CHECK(f.played.drained(f.played.set(Grant::closed)));
    return f.played.mailbox->pace.load();
  };
  const auto submitAndRest = [&] {
    f.submitter.submit(nullptr);
    CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
  };
  CHECK(paceAtTheEnd() == Pace::unknown);  // pauses behind an open gate are not observed
  // A quick machine may have only pauses that are too short; pauses_test has the limit.
  CHECK(comesTrue([&] {
    f.played.set(Grant::window);
    submitAndRest();
    submitAndRest();
    return paceAtTheEnd() == Pace::pausing;
  }));
  f.played.set(Grant::window);
  CHECK(paceAtTheEnd() == Pace::unknown);  // there was no work
  f.played.set(Grant::window);
  f.submitter.submit(nullptr);
  f.played.set(Grant::open);
  CHECK(paceAtTheEnd() == Pace::unknown);

  // The gate's thread may be late and miss a window.
  CHECK(comesTrue([&] {
    f.played.set(Grant::window);
    Hold hold(nullptr);
    f.submitter.submit(nullptr);
    const std::uint32_t word = f.played.set(Grant::closed);
    hold.release();
    CHECK(f.played.drained(word));
    return f.played.mailbox->pace.load() == Pace::steady;
  }));

  Fixture late(Grant::window);
  late.played.mailbox->pace = Pace::steady;
  CHECK(late.played.drained(late.played.set(Grant::closed)));
  CHECK(late.played.mailbox->pace.load() == Pace::unknown);
}

void drainsWorkFromBefore(CUstream stream) {
  Fixture f(Grant::open);
  Hold hold(stream);
  f.submitter.submit(stream);
  drainsAfter(f, hold);
}

TEST_CASE_FIXTURE(WithDriver, "work behind the open gate is waited for, on streams of every kind") {
  drainsWorkFromBefore(nullptr);
  drainsWorkFromBefore(CU_STREAM_LEGACY);
  drainsWorkFromBefore(CU_STREAM_PER_THREAD);
  const CUstream stream = createStream();
  drainsWorkFromBefore(stream);
  driver.cuStreamDestroy_v2(stream);
}

// The gate's thread, asleep without work, did not notice that time.
TEST_CASE_FIXTURE(WithDriver, "work of a short time with an open gate is waited for") {
  Fixture f(Grant::open);
  const CUstream stream = createStream();
  f.submitter.submit(stream);
  CHECK(f.played.drained(f.played.set(Grant::closed)));
  f.played.set(Grant::window);
  CHECK(f.played.hears());  // that it has drained
  CHECK(f.played.hears());  // that it has nothing to do in its window; it sleeps then
  f.played.set(Grant::open);
  Hold hold(stream);
  f.submitter.submit(stream);
  drainsAfter(f, hold);
  f.gate.forget(stream);
  driver.cuStreamDestroy_v2(stream);
}

// sampling_test has how much.
TEST_CASE_FIXTURE(WithDriver, "work behind an open gate is counted while it runs") {
  Fixture f(Grant::open);
  const CUstream stream = createStream();
  const auto used = [&] { return f.played.mailbox->used.load(); };
  for (int round = 0; round < 3; ++round) {
    const Hold hold(stream);
    f.submitter.submit(stream);
    for (int samples = 0; samples < 5; ++samples) {
      const std::uint64_t before = used();
      CHECK(comesTrue([&] { return used() > before; }));
    }
  }
  f.gate.forget(stream);
  driver.cuStreamDestroy_v2(stream);
}

TEST_CASE_FIXTURE(WithDriver, "work on each of 200 streams is waited for") {
  Fixture f(Grant::open);
  std::vector<CUstream> streams(200);
  for (CUstream& stream : streams) stream = createStream();
  Hold hold(streams[100]);
  for (const CUstream stream : streams) f.submitter.submit(stream);
  drainsAfter(f, hold);
  for (const CUstream stream : streams) f.gate.forget(stream), driver.cuStreamDestroy_v2(stream);
}

void destroy(Gate& gate, CUstream stream) {
  gate.forget(stream);
  CHECK(driver.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
}

/// The driver destroys a stream at once, and its work goes on. `known`: the duration of the work.
void drainsWorkOfADestroyedStream(Grant before, bool known) {
  Fixture f(before);
  if (before != Grant::open) f.played.set(Grant::window);
  for (int i = 0; known && i < 2; ++i) {
    f.submitter.submit(nullptr);
    if (before != Grant::open)
      CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
  }
  const CUstream stream = createStream();
  Hold hold(stream);
  f.submitter.submit(stream);
  destroy(f.gate, stream);
  drainsAfter(f, hold);
}

TEST_CASE_FIXTURE(WithDriver, "work of a destroyed stream is waited for") {
  for (const bool known : {false, true}) {
    drainsWorkOfADestroyedStream(Grant::open, known);
    drainsWorkOfADestroyedStream(Grant::closed, known);
  }
  Fixture f(Grant::open);
  const CUstream idle = createStream();
  f.submitter.submit(idle);
  CHECK(driver.cuStreamSynchronize(idle) == CUDA_SUCCESS);
  destroy(f.gate, idle);
  CHECK(f.played.drained(f.played.set(Grant::closed)));
}

TEST_CASE_FIXTURE(WithDriver, "work of a destroyed stream is counted behind an open gate") {
  Fixture f(Grant::open);
  const CUstream stream = createStream();
  const Hold hold(stream);
  f.submitter.submit(stream);
  destroy(f.gate, stream);
  const auto used = [&] { return f.played.mailbox->used.load(); };
  for (int samples = 0; samples < 5; ++samples) {
    const std::uint64_t before = used();
    CHECK(comesTrue([&] { return used() > before; }));
  }
}

// A client may ask for it; the driver refuses.
TEST_CASE_FIXTURE(WithDriver, "a default stream that is to be destroyed is still waited for") {
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    Fixture f(Grant::open);
    Hold hold(stream);
    f.submitter.submit(stream);
    f.gate.forget(stream);
    drainsAfter(f, hold);
  }
}

/// Another context of the GPU, current while it lives.
struct OtherContext {
  explicit OtherContext(Fixture& fixture) : f(fixture) {
    CHECK(driver.cuCtxCreate_v2(&handle, 0, 0) == CUDA_SUCCESS);
    f.submitter.pass.contextChanged();
  }
  ~OtherContext() {
    f.gate.forget(handle);
    CHECK(driver.cuCtxDestroy_v2(handle) == CUDA_SUCCESS);
    driver.cuCtxSetCurrent(context);
    f.submitter.pass.contextChanged();
  }
  Fixture& f;
  CUcontext handle = nullptr;
};

TEST_CASE_FIXTURE(WithDriver, "work of a stream that another context destroys is waited for") {
  for (const Grant before : {Grant::open, Grant::closed}) {
    Fixture f(before);
    if (before != Grant::open) f.played.set(Grant::window);
    const CUstream stream = createStream();
    Hold hold(stream);
    {
      const OtherContext other(f);
      f.submitter.submit(stream);
      destroy(f.gate, stream);
    }
    drainsAfter(f, hold);
  }
}

// The driver waits for the work of a context that it destroys.
TEST_CASE_FIXTURE(WithDriver, "the end of a context waits for its work, and drains after it") {
  for (const bool destroyed : {false, true}) {
    Fixture f(Grant::open);
    CUcontext other = nullptr;
    CHECK(driver.cuCtxCreate_v2(&other, 0, 0) == CUDA_SUCCESS);
    const CUstream stream = createStream();
    Hold hold(stream);
    driver.cuCtxSetCurrent(context);
    f.submitter.submit(stream);  // from the first context
    if (destroyed) destroy(f.gate, stream);
    {
      const unit::Waiter end([&] {
        f.gate.forget(other);
        CHECK(driver.cuCtxDestroy_v2(other) == CUDA_SUCCESS);
      });
      CHECK(end.waits());
      drainsAfter(f, hold);
    }
  }
}

TEST_CASE_FIXTURE(WithDriver, "work of a destroyed context is not waited for") {
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

/// A program with a held stream on each of two GPUs, the second of which is current. The first has
/// work.
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

/// The next work of the first GPU waits while both have work.
void admitsNoMore(TwoGpus& gpus, std::uint32_t word) {
  Fixture& f = gpus.f;
  const Through late(f.gate, gpus.streams[0]);
  CHECK(comesTrue([&] { return f.played.mailbox->wants.load() == 1; }));
  CHECK(f.played.staysUndrained(word));
  CHECK(!late.ended());
  for (auto& hold : gpus.holds) hold->release();
  CHECK(f.played.drained(word));
  f.played.set(Grant::window);
}

// And no more than that.
TEST_CASE_FIXTURE(WithDriver, "a closed gate admits the work that another GPU waits for") {
  TwoGpus gpus;
  gpus.f.played.set(Grant::window);
  gpus.start();
  const std::uint32_t word = gpus.f.played.set(Grant::closed);
  gpus.f.submitter.submit(gpus.streams[1]);  // returns, although the gate is closed
  admitsNoMore(gpus, word);
}

// Nothing was counted before. The work is admitted once the other GPU gets nothing done; from then
// on it is counted.
TEST_CASE_FIXTURE(WithDriver, "a gate that closes for the first time admits work for an idle GPU") {
  TwoGpus gpus;
  gpus.start();
  const std::uint32_t word = gpus.f.played.set(Grant::closed);
  gpus.f.submitter.submit(gpus.streams[1]);
  admitsNoMore(gpus, word);
}

TEST_CASE_FIXTURE(WithDriver, "a closed gate admits other work that precedes the awaited work") {
  TwoGpus gpus;
  gpus.start();
  gpus.f.submitter.submit(nullptr);  // the second GPU is known and idle
  const std::uint32_t word = gpus.f.played.set(Grant::closed);
  driver.cuCtxSetCurrent(context);
  gpus.f.submitter.pass.contextChanged();
  gpus.f.submitter.submit(gpus.streams[0]);
  gpus.holds[0]->release();
  CHECK(gpus.f.played.drained(word));
}

// Otherwise the program would seem to use two GPUs, one of which waits for the other's work.
TEST_CASE_FIXTURE(WithDriver, "without a current context, work belongs to its stream's") {
  Fixture f(Grant::open);
  f.played.set(Grant::window);
  const CUstream stream = createStream();
  Hold hold(stream);
  driver.cuCtxSetCurrent(nullptr);
  f.submitter.pass.contextChanged();
  for (int i = 0; i < 10; ++i) f.submitter.submit(stream);
  f.submitter.pass.enter(nullptr, {});  // the driver refuses what follows
  f.submitter.pass.leave();
  const std::uint32_t word = f.played.set(Grant::closed);
  const Through late(f.gate);
  CHECK(comesTrue([&] { return f.played.mailbox->wants.load() == 1; }));
  CHECK(f.played.staysUndrained(word));
  CHECK(!late.ended());
  hold.release();
  CHECK(f.played.drained(word));
  f.played.set(Grant::window);
  driver.cuCtxSetCurrent(context);
  driver.cuStreamDestroy_v2(stream);
}

// Work that is stuck does not stop the program for ever.
TEST_CASE_FIXTURE(WithDriver, "a window admits no more than the device can do in a while") {
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
        submitter.submit(stream, 4000 + i), ++submitted;  // each of a shape of its own
    });
    CHECK(comesTrue([&] { return submitted.load() >= 8; }));  // one by one, although no work ends
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

// Until the reservation has ended. Work too long to be held does not wait.
TEST_CASE_FIXTURE(WithDriver, "work that would overlap a reservation waits") {
  Fixture f(Grant::open);
  f.played.set(Grant::window);
  for (int i = 0; i < 2; ++i) {  // its duration is known afterwards
    f.submitter.submit(nullptr);
    CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
  }
  constexpr std::uint64_t kLong = 600'000'000'000;
  const std::uint64_t now = wire::monotonicNanoseconds();
  f.played.mailbox->reservedFrom = now + kLong;
  f.played.mailbox->reservedUntil = now + 2 * kLong;
  f.played.mailbox->longestHeld = 1'000'000'000;
  f.submitter.submit(nullptr);  // ends long before the reservation
  f.played.mailbox->reservedFrom = now;
  f.played.mailbox->longestHeld = 1;
  f.submitter.submit(nullptr);
  f.played.mailbox->longestHeld = 1'000'000'000;
  {
    const Through late(f.gate);
    CHECK(late.waits());
    f.played.mailbox->reservedUntil = wire::monotonicNanoseconds();
  }
  CHECK(f.played.drained(f.played.set(Grant::closed)));
}

// It may still submit.
TEST_CASE_FIXTURE(WithDriver, "a thread between enter() and leave() delays the drain") {
  Fixture f(Grant::open);
  f.submitter.pass.enter(nullptr, {});
  const std::uint32_t word = f.played.set(Grant::closed);
  CHECK(f.played.staysUndrained(word));
  f.submitter.pass.leave();
  CHECK(f.played.drained(word));
}

TEST_CASE_FIXTURE(WithDriver, "work that is submitted after the gate has closed is waited for") {
  for (const Grant next : {Grant::closed, Grant::window}) {
    Fixture f(Grant::open);
    const CUstream stream = createStream();
    f.submitter.pass.enter(stream, {});
    std::uint32_t word = f.played.set(next);
    if (next == Grant::closed) CHECK(f.played.staysUndrained(word));
    Hold hold(stream);
    CHECK(driver.cuMemsetD8Async(memory, 1, kBytes, stream) == CUDA_SUCCESS);
    f.submitter.pass.leave();
    if (next == Grant::window) word = f.played.set(Grant::closed);
    CHECK(f.played.staysUndrained(word));
    hold.release();
    CHECK(f.played.drained(word));
    destroy(f.gate, stream);
  }
}

TEST_CASE_FIXTURE(WithDriver, "a waiting thread passes when the arbiter dies") {
  const std::string path = "/tmp/gate-test-" + std::to_string(getpid());
  Gate gate(driver, waited, captures);
  gate.open(path);
  for (int death = 0; death < 3; ++death) {
    auto played = std::make_unique<PlayedArbiter>(path);
    played->introduce(Grant::closed);
    CHECK(played->drained(played->mailbox->grant));
    std::thread waiting([&] { Submitter(gate).submit(nullptr); });
    CHECK(comesTrue([&] { return played->mailbox->wants.load() == 1; }));
    played.reset();
    waiting.join();
    Submitter(gate).submit(nullptr);  // open without an arbiter
  }
}

TEST_CASE_FIXTURE(WithDriver, "a mailbox of another version sets no limit") {
  const std::string path = "/tmp/gate-test-" + std::to_string(getpid());
  PlayedArbiter played(path);
  Gate gate(driver, waited, captures);
  gate.open(path);
  played.introduce(Grant::closed, arbiter::kMailboxVersion + 1);
  Submitter(gate).submit(nullptr);  // an unknown version sets no limit
}

TEST_CASE_FIXTURE(WithDriver, "the record of a timed event is reported") {
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

/// A stream that captures while it lives, as the worker begins captures.
class Capture {
 public:
  Capture(Gate& gate, CUstream stream) : stream_(stream) {
    gate.aboutToCapture(stream);
    const auto blind = gate.blind();
    CHECK(driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    captures.began({stream, nullptr, context, 0, false});
  }
  /// Ends with a graph of so many nodes; none if it was invalidated.
  void end(std::size_t nodes) {
    CUgraph graph = nullptr;
    std::size_t count = 0;
    CHECK(driver.cuStreamEndCapture(stream_, &graph) == CUDA_SUCCESS);
    CHECK(driver.cuGraphGetNodes(graph, nullptr, &count) == CUDA_SUCCESS);
    CHECK(count == nodes);
    captures.ended(stream_, nullptr, true);
    driver.cuGraphDestroy(graph);
  }

 private:
  CUstream stream_;
};

void drainsBesideACapture(Grant before, CUstream busy, unsigned flags) {
  Fixture f(before);
  if (before != Grant::open) f.played.set(Grant::window);
  CUstream stream = nullptr;
  CHECK(driver.cuStreamCreate(&stream, flags) == CUDA_SUCCESS);
  {
    Hold hold(busy == kCapturing ? stream : busy);
    f.submitter.submit(busy == kCapturing ? stream : busy);
    Capture capture(f.gate, stream);
    CHECK(driver.cuMemsetD8Async(memory, 1, kBytes, stream) == CUDA_SUCCESS);
    drainsAfter(f, hold);
    capture.end(1);
  }
  f.gate.forget(stream);
  driver.cuStreamDestroy_v2(stream);
}

TEST_CASE_FIXTURE(WithDriver, "work before a capture is waited for, and the capture goes on") {
  for (const Grant before : {Grant::open, Grant::closed}) {
    const CUstream other = createStream();
    for (const unsigned flags : {CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING}) {
      drainsBesideACapture(before, kCapturing, flags);
      drainsBesideACapture(before, CU_STREAM_LEGACY, flags);
      drainsBesideACapture(before, other, flags);
    }
    driver.cuStreamDestroy_v2(other);
  }
}

// A stream captures in its own context, whichever is current.
TEST_CASE_FIXTURE(WithDriver, "work before a capture of another context is waited for") {
  for (const Grant before : {Grant::open, Grant::closed}) {
    for (const bool submits : {false, true}) {
      Fixture f(before);
      if (before != Grant::open) f.played.set(Grant::window);
      const CUstream stream = createStream();
      Hold hold(stream);
      if (!submits) f.submitter.submit(stream);
      const OtherContext other(f);
      if (submits) f.submitter.submit(stream);
      Capture capture(f.gate, stream);
      drainsAfter(f, hold);
      capture.end(0);
      destroy(f.gate, stream);
    }
  }
}

TEST_CASE_FIXTURE(WithDriver, "work before a capture without a context is waited for") {
  Fixture f(Grant::open);
  const CUstream stream = createStream();
  Hold hold(stream);
  f.submitter.submit(stream);
  driver.cuCtxSetCurrent(nullptr);
  CHECK(f.gate.aboutToCapture(stream) == CUDA_SUCCESS);
  driver.cuCtxSetCurrent(context);
  CHECK(driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  captures.began({stream, nullptr, context, 0, false});
  drainsAfter(f, hold);
  destroy(f.gate, stream);
  captures.ended(stream, nullptr, false);
}

// The default streams cannot be asked while a stream that they wait for captures.
TEST_CASE_FIXTURE(WithDriver, "work of a per-thread stream beside a capture is waited for") {
  for (const Grant before : {Grant::open, Grant::closed}) {
    Fixture f(before);
    if (before != Grant::open) f.played.set(Grant::window);
    CUstream stream = nullptr;
    CHECK(driver.cuStreamCreate(&stream, CU_STREAM_DEFAULT) == CUDA_SUCCESS);
    Capture capture(f.gate, stream);
    Hold hold(CU_STREAM_PER_THREAD);
    f.submitter.submit(CU_STREAM_PER_THREAD);
    const unit::Waiter other([&] {
      Submitter submitter(f.gate);  // its own per-thread stream has no work that is held
      submitter.submit(CU_STREAM_PER_THREAD);
    });
    CHECK(comesTrue([&] { return other.ended(); }));
    drainsAfter(f, hold);
    capture.end(0);
    f.gate.forget(stream);
    driver.cuStreamDestroy_v2(stream);
  }
}

// The work here stands for a question that the driver would not answer.
TEST_CASE_FIXTURE(WithDriver, "a still session answers the arbiter and asks the driver nothing") {
  for (const Grant before : {Grant::open, Grant::window}) {
    Fixture f(Grant::open);
    f.played.set(before);
    const CUstream stream = createStream();
    Hold hold(stream);
    f.submitter.submit(stream);
    {
      const Gate::Stillness still(f.gate);
      CHECK(f.played.drained(f.played.set(Grant::closed)));
      f.played.set(Grant::window);
      CHECK(comesTrue([&] { return f.played.mailbox->idleSince.load() != 0; }));
      CHECK(f.played.drained(f.played.set(Grant::closed)));
    }
    f.played.set(before);
    f.submitter.submit(stream);
    drainsAfter(f, hold);
    f.gate.forget(stream);
    driver.cuStreamDestroy_v2(stream);
  }
}

TEST_CASE_FIXTURE(WithDriver, "work before a capture is waited for when the stream is destroyed") {
  for (const Grant before : {Grant::open, Grant::closed}) {
    Fixture f(before);
    if (before != Grant::open) f.played.set(Grant::window);
    const CUstream stream = createStream();
    Hold hold(stream);
    f.submitter.submit(stream);
    const Capture capture(f.gate, stream);
    destroy(f.gate, stream);
    captures.ended(stream, nullptr, false);
    drainsAfter(f, hold);
  }
}

TEST_CASE_FIXTURE(WithDriver, "captured work is not waited for") {
  Fixture f(Grant::open);
  const CUstream stream = createStream();
  Capture capture(f.gate, stream);
  f.submitter.pass.enter(stream, {});
  CHECK(driver.cuMemsetD8Async(memory, 1, kBytes, stream) == CUDA_SUCCESS);
  f.submitter.pass.leaveUnmeasured();
  CHECK(f.played.drained(f.played.set(Grant::closed)));
  capture.end(1);
  f.gate.forget(stream);
  driver.cuStreamDestroy_v2(stream);
}

TEST_CASE_FIXTURE(WithDriver, "threads pass a gate that opens and closes quickly") {
  Fixture f(Grant::open);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> passed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Submitter submitter(f.gate);
      const CUstream stream = createStream();
      for (int n = 0; !stop; ++n, ++passed)
        submitter.submit(n % 3 == 0 ? CU_STREAM_PER_THREAD : stream);
      driver.cuStreamSynchronize(stream);
      f.gate.forget(stream);
      driver.cuStreamDestroy_v2(stream);
    });
  }
  for (int i = 0; i < 300; ++i) {
    const std::uint32_t word = f.played.set(Grant::closed);
    if (i % 3 == 0) CHECK(f.played.drained(word));
    f.played.set(i % 2 == 0 ? Grant::window : Grant::open);
    const std::uint64_t before = passed;
    CHECK(comesTrue([&] { return passed > before + 4; }));
  }
  stop = true;
  f.played.set(Grant::open);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
