// Barriers between threads and processes, with membarrier(2) and where a filter refuses it: if two
// sides each store and then load, one of them sees what the other stored. Without a barrier,
// processors that reorder a store with a later load show both missing it.
#include "wire/process_barrier.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "test/unit/program.h"
#include "wire/barrier.h"
#include "wire/wait.h"

namespace wire {
namespace {

constexpr std::uint32_t kRounds = 100'000;

/// A round of its own for each pair of stores and loads, on lines of its own.
struct Round {
  alignas(128) std::atomic<std::uint32_t> data;
  alignas(128) std::atomic<std::uint32_t> asleep;
  bool publisherMissed, sleeperMissed;
};

struct Litmus {
  std::atomic<std::uint32_t> begun, expedites;
  Round rounds[kRounds];
};

Litmus* makeLitmus() {
  void* place =
      mmap(nullptr, sizeof(Litmus), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) std::abort();
  return static_cast<Litmus*>(place);
}

/// Stores the data, then looks whether the sleeper sleeps; at about the moment at which the sleeper
/// looks for data.
template <class Look>
void publish(Litmus& litmus, Look look) {
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    while (barrier::observe(litmus.begun) <= i) pauseProcessor();
    barrier::publish(litmus.rounds[i].data, std::uint32_t{1});
    litmus.rounds[i].publisherMissed = look(litmus.rounds[i].asleep) == 0;
  }
}

/// Says that it sleeps, then looks at the data.
template <class Announce>
void sleep(Litmus& litmus, Announce announce) {
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    barrier::publish(litmus.begun, i + 1);
    for (std::uint32_t delay = 0; delay < i % 512; ++delay)
      barrier::keepCopy();  // the publisher needs a while to get here, too
    announce(litmus.rounds[i].asleep);
    litmus.rounds[i].sleeperMissed = barrier::glance(litmus.rounds[i].data) == 0;
  }
}

void nobodyWasMissed(Litmus* litmus) {
  std::uint32_t missed = 0;
  for (const Round& round : litmus->rounds)
    missed += round.publisherMissed && round.sleeperMissed ? 1 : 0;
  CHECK(missed == 0);
  munmap(litmus, sizeof(Litmus));
}

void betweenThreads() {
  Litmus* litmus = makeLitmus();
  const ThreadBarrier threads;
  std::thread publisher([&] {
    publish(*litmus, [&](auto& asleep) {
      threads.frequent();
      return barrier::glance(asleep);
    });
  });
  sleep(*litmus, [&](auto& asleep) {
    barrier::note(asleep, std::uint32_t{1});
    threads.rare();
  });
  publisher.join();
  nobodyWasMissed(litmus);
}

/// `registers`: the publisher executes the sleeper's barriers; else it has to fence.
void betweenProcesses(bool registers) {
  Litmus* litmus = makeLitmus();
  Seat seat{};
  takeSeat(seat);
  litmus->expedites = seat.expedites.load();
  const pid_t child = fork();
  if (child == 0) {
    if (registers) registerForProcessBarriers();
    publish(*litmus, [&](auto& asleep) { return barrier::sleepReason(asleep, litmus->expedites); });
    _exit(0);
  }
  sleep(*litmus, [&](auto& asleep) {
    barrier::announceSleep(asleep, 1);
    CHECK(settleBeforeSleep(seat) == kLongestSleepNanoseconds);
  });
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  nobodyWasMissed(litmus);
}

void refuseMembarrier() {
  sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_membarrier},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog program{4, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    std::abort();
}

/// The sleeper revokes its announcement, and its next sleep is short.
void whereItIsRefusedLater(bool expedited) {
  Seat seat{};
  takeSeat(seat);
  CHECK((seat.expedites.load() != 0) == expedited);
  refuseMembarrier();
  CHECK(settleBeforeSleep(seat) ==
        (expedited ? kSleepWithoutBarrierNanoseconds : kLongestSleepNanoseconds));
  CHECK(seat.expedites.load() == 0);
  CHECK(settleBeforeSleep(seat) == kLongestSleepNanoseconds);
}

// Registrations and filters hold for the life of a process, so each test case has one of its own.

TEST_CASE("barriers order the stores and loads of two threads") { unit::inChild(betweenThreads); }

TEST_CASE("barriers order the stores and loads of two processes") {
  unit::inChild([] { betweenProcesses(true); });
}

TEST_CASE("a publisher that is not registered for barriers uses fences") {
  unit::inChild([] { betweenProcesses(false); });
}

TEST_CASE("threads are ordered where a filter refuses membarrier") {
  unit::inChild([] {
    refuseMembarrier();
    betweenThreads();
  });
}

TEST_CASE("processes are ordered where a filter refuses membarrier") {
  unit::inChild([] {
    refuseMembarrier();
    betweenProcesses(true);
  });
}

TEST_CASE("a sleeper notices a filter that is installed after its session began") {
  unit::inChild([] { whereItIsRefusedLater(executeProcessBarrier()); });
}

TEST_CASE("a process whose filter refuses membarrier is not registered for barriers") {
  unit::inChild([] {
    refuseMembarrier();
    registerForProcessBarriers();
    CHECK(!isRegisteredForProcessBarriers());
    whereItIsRefusedLater(false);
  });
}

}  // namespace
}  // namespace wire
