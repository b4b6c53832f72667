// The quota of an allocation over several processes: never more than the limit, also when they
// race, also when one is killed.
#include "native/worker/accounts/quota.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "native/worker/test/quota_file.h"

namespace {

constexpr std::uint64_t kLimit = 1000;

void clearSlot(const std::string& path, unsigned slot) {
  const int file = open(path.c_str(), O_RDWR);
  const char zeros[32] = {};
  if (pwrite(file, zeros, sizeof zeros, 256 + slot * 32) != sizeof zeros) std::abort();
  close(file);
}

/// Takes one unit at a time until there is none; returns how many.
int takeAll(const std::string& path, unsigned slot) {
  worker::Quota quota;
  if (!quota.open(path, slot, kLimit).empty()) return -1;
  int taken = 0;
  while (quota.charge(7)) ++taken;
  return taken;
}

/// A quota file of the limit, for one test case.
struct File {
  const std::string path = worker::test::makeQuotaFile(kLimit);
  ~File() { unlink(path.c_str()); }
};

TEST_CASE_FIXTURE(File, "one process is charged up to the limit") {
  worker::Quota quota;
  CHECK(quota.open(path, 0, kLimit).empty());
  CHECK(quota.charge(600));
  CHECK(!quota.charge(401));
  CHECK(quota.charge(400));
  CHECK(!quota.charge(1));
  CHECK(!quota.charge(~std::uint64_t{0}));  // no overflow
  CHECK(quota.used() == kLimit);
  CHECK(quota.peak() == kLimit);
  quota.refund(600);
  quota.remember(0x10, 400, nullptr);
  CHECK(quota.used() == 400);
  const auto taken = quota.take(0x10);
  REQUIRE(taken);
  CHECK(taken->bytes == 400);
  CHECK(!quota.take(0x10));
  CHECK(quota.used() == 400);
  quota.refund(taken->bytes);
  CHECK(quota.used() == 0);
  CHECK(quota.peak() == kLimit);
  CHECK(quota.charge(5));
  quota.remember(1, 2, &quota);
  quota.remember(2, 3, nullptr);
  quota.forgetOwned(&quota);
  CHECK(quota.used() == 3);
  quota.forgetOwned(nullptr);
  CHECK(quota.used() == 0);

  CHECK(quota.charge(900));
  int reclaimed = 0;
  quota.setReclaim([&] {
    ++reclaimed;
    quota.refund(400);
  });
  CHECK(!quota.chargeAtOnce(101));
  CHECK(quota.charge(500));
  CHECK(reclaimed == 1);
  CHECK(quota.used() == kLimit);
  CHECK(!quota.charge(401));
  CHECK(reclaimed == 2);
  CHECK(quota.used() == 600);
  quota.setReclaim({});
  quota.refund(600);
  quota.chargeBeyond(kLimit + 1);
  CHECK(quota.used() == kLimit + 1);
  CHECK(!quota.charge(1));
  CHECK(!quota.charge(0));
  quota.refund(kLimit + 1);
}

TEST_CASE_FIXTURE(File, "pinned memory is summed over all slots") {
  worker::Quota first;
  worker::Quota second;
  CHECK(first.open(path, 0, kLimit).empty());
  CHECK(second.open(path, 239, kLimit).empty());
  CHECK(first.charge(kLimit));
  CHECK(first.chargePinned(60, 100));
  CHECK(!second.chargePinned(41, 100));
  CHECK(second.chargePinned(40, 100));
  CHECK(!first.chargePinned(~std::uint64_t{0}, 100));
  CHECK(first.chargePinned(5000, 0));
  first.refundPinned(5060);
  clearSlot(path, 239);
  CHECK(first.chargePinned(100, 100));
  CHECK(!first.chargePinned(1, 100));
  first.refundPinned(100);
  worker::Quota alone;
  CHECK(alone.chargePinned(100, 100));
  CHECK(!alone.chargePinned(1, 100));
  alone.refundPinned(100);
  CHECK(alone.chargePinned(1, 100));
}

TEST_CASE_FIXTURE(File, "handles and threads are summed over all slots") {
  worker::Quota first;
  worker::Quota second;
  CHECK(first.open(path, 0, kLimit).empty());
  CHECK(second.open(path, 239, kLimit).empty());
  first.handles() = 30;
  CHECK(second.handlesLeft(31));
  CHECK(!second.handlesLeft(30));
  second.handles() = 70;
  CHECK(first.handlesLeft(101));
  CHECK(!first.handlesLeft(100));
  CHECK(first.chargeThread(3));
  CHECK(second.chargeThread(3));
  CHECK(second.chargeThread(3));
  CHECK(!first.chargeThread(3));
  CHECK(!second.chargeThread(3));
  second.refundThread();
  CHECK(first.chargeThread(3));
  CHECK(!second.chargeThread(3));
  CHECK(first.used() == 0);
  clearSlot(path, 239);
  CHECK(first.handlesLeft(31));
  CHECK(!first.handlesLeft(30));
  CHECK(second.chargeThread(3));
  CHECK(!second.chargeThread(3));
  clearSlot(path, 0);
  clearSlot(path, 239);
  worker::Quota alone;
  alone.handles() = 2;
  CHECK(alone.handlesLeft(3));
  CHECK(!alone.handlesLeft(2));
  CHECK(alone.chargeThread(1));
  CHECK(!alone.chargeThread(1));
  alone.refundThread();
  CHECK(alone.chargeThread(1));
}

TEST_CASE_FIXTURE(File, "racing processes get the limit together") {
  constexpr unsigned kProcesses = 4;
  pid_t children[kProcesses];
  for (unsigned slot = 0; slot < kProcesses; ++slot) {
    children[slot] = fork();
    if (children[slot] == 0) _exit(takeAll(path, slot));
  }
  int total = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    total += WEXITSTATUS(status);
  }
  CHECK(total == static_cast<int>(kLimit / 7));
}

// Its charge stays until its slot is cleared.
TEST_CASE_FIXTURE(File, "a process that is killed anywhere leaves a usable quota") {
  auto& charges = *static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int round = 0; round < 50; ++round) {
    charges = 0;
    const pid_t child = fork();
    if (child == 0) {
      worker::Quota quota;
      if (!quota.open(path, 5, kLimit).empty()) _exit(1);
      for (;; ++charges) {
        quota.charge(10);
        quota.refund(10);
      }
    }
    while (charges < round * 37) sched_yield();
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    clearSlot(path, 5);
    worker::Quota quota;
    CHECK(quota.open(path, 6, kLimit).empty());
    CHECK(quota.used() == 0);
    CHECK(quota.charge(kLimit));
    quota.refund(kLimit);
  }
}

TEST_CASE_FIXTURE(File, "a slot beyond the last is refused") {
  worker::Quota quota;
  CHECK(!quota.open(path, 240, kLimit).empty());
}

TEST_CASE("a file that is no quota file is refused, and without a file there is no limit") {
  worker::Quota quota;
  CHECK(quota.open("/nonexistent/quota", 0, 1).find("/nonexistent/quota") != std::string::npos);
  CHECK(!quota.open("/dev/null", 0, 1).empty());
  worker::Quota unlimited;
  CHECK(unlimited.charge(std::uint64_t{1} << 40));
  CHECK(unlimited.peak() == std::uint64_t{1} << 40);
}

}  // namespace
