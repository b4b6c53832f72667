// The quota of an allocation over several processes: never more than the limit, also when they
// race, also when one is killed.
#include "native/worker/accounts/quota.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "native/worker/test/quota_file.h"
#include "wire/test/check.h"

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

void testAlone(const std::string& path) {
  worker::Quota quota;
  CHECK(quota.open(path, 0, kLimit).empty());
  CHECK(quota.charge(600) && !quota.charge(401) && quota.charge(400) && !quota.charge(1));
  CHECK(!quota.charge(~std::uint64_t{0}));  // no overflow
  CHECK(quota.used() == kLimit && quota.peak() == kLimit);
  quota.refund(600);
  quota.remember(0x10, 400, nullptr);
  CHECK(quota.used() == 400);
  const auto taken = quota.take(0x10);
  CHECK(taken && taken->bytes == 400 && !quota.take(0x10) && quota.used() == 400);
  quota.refund(taken->bytes);
  CHECK(quota.used() == 0 && quota.peak() == kLimit);
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
  CHECK(!quota.chargeAtOnce(101) && quota.charge(500) && reclaimed == 1 && quota.used() == kLimit);
  CHECK(!quota.charge(401) && reclaimed == 2 && quota.used() == 600);
  quota.setReclaim({});
  quota.refund(600);
  quota.chargeBeyond(kLimit + 1);
  CHECK(quota.used() == kLimit + 1 && !quota.charge(1) && !quota.charge(0));
  quota.refund(kLimit + 1);
}

/// Pinned memory is a sum of its own, over all slots too.
void testPinned(const std::string& path) {
  worker::Quota first;
  worker::Quota second;
  CHECK(first.open(path, 0, kLimit).empty() && second.open(path, 239, kLimit).empty());
  CHECK(first.charge(kLimit) && first.chargePinned(60, 100) && !second.chargePinned(41, 100) &&
        second.chargePinned(40, 100));
  CHECK(!first.chargePinned(~std::uint64_t{0}, 100) && first.chargePinned(5000, 0));
  first.refundPinned(5060);
  clearSlot(path, 239);
  CHECK(first.chargePinned(100, 100) && !first.chargePinned(1, 100));
  first.refundPinned(100);
  worker::Quota alone;
  CHECK(alone.chargePinned(100, 100) && !alone.chargePinned(1, 100));
  alone.refundPinned(100);
  CHECK(alone.chargePinned(1, 100));
}

/// Handles and threads too, each a sum of its own.
void testHandlesAndThreads(const std::string& path) {
  worker::Quota first;
  worker::Quota second;
  CHECK(first.open(path, 0, kLimit).empty() && second.open(path, 239, kLimit).empty());
  first.handles() = 30;
  CHECK(second.handlesLeft(31) && !second.handlesLeft(30));
  second.handles() = 70;
  CHECK(first.handlesLeft(101) && !first.handlesLeft(100));
  CHECK(first.chargeThread(3) && second.chargeThread(3) && second.chargeThread(3) &&
        !first.chargeThread(3) && !second.chargeThread(3));
  second.refundThread();
  CHECK(first.chargeThread(3) && !second.chargeThread(3) && first.used() == 0);
  clearSlot(path, 239);
  CHECK(first.handlesLeft(31) && !first.handlesLeft(30) && second.chargeThread(3) &&
        !second.chargeThread(3));
  clearSlot(path, 0);
  clearSlot(path, 239);
  worker::Quota alone;
  alone.handles() = 2;
  CHECK(alone.handlesLeft(3) && !alone.handlesLeft(2) && alone.chargeThread(1) &&
        !alone.chargeThread(1));
  alone.refundThread();
  CHECK(alone.chargeThread(1));
}

void testRace(const std::string& path) {
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

/// A process that dies anywhere inside leaves a quota that others can use, and what it held until
/// its slot is cleared.
void testKilled(const std::string& path) {
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      worker::Quota quota;
      if (!quota.open(path, 5, kLimit).empty()) _exit(1);
      for (;;) {
        quota.charge(10);
        quota.refund(10);
      }
    }
    usleep(500 + round * 37);
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

void testWrongFile() {
  worker::Quota quota;
  CHECK(quota.open("/nonexistent/quota", 0, 1).find("/nonexistent/quota") != std::string::npos);
  CHECK(!quota.open("/dev/null", 0, 1).empty());
  worker::Quota unlimited;
  CHECK(unlimited.charge(std::uint64_t{1} << 40) && unlimited.peak() == std::uint64_t{1} << 40);
}

}  // namespace

int main() {
  for (const auto test : {testAlone, testPinned, testHandlesAndThreads, testRace, testKilled}) {
    const std::string path = worker::test::makeQuotaFile(kLimit);
    test(path);
    unlink(path.c_str());
  }
  const std::string path = worker::test::makeQuotaFile(kLimit);
  worker::Quota quota;
  CHECK(!quota.open(path, 240, kLimit).empty());
  unlink(path.c_str());
  testWrongFile();
  return wire::test::checkedResult();
}
