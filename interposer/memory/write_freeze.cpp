#include "interposer/memory/write_freeze.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace interposer {

namespace {

std::atomic<std::uint64_t> frozenBegin{0};
std::atomic<std::uint64_t> frozenEnd{0};
std::atomic<std::uint64_t> freezes{0};  ///< so far
/// The handler that ours replaced; set before ours is installed.
struct sigaction earlier {};

bool isFrozen(std::uint64_t address) {
  return address >= frozenBegin.load() && address < frozenEnd.load();
}

/// Whether this process may write the word around the address. The kernel adds 0 to it.
bool isWritable(std::uint64_t address) {
  constexpr std::uint32_t kAddNothing =
      (std::uint32_t{FUTEX_OP_ADD} << 28) | (std::uint32_t{FUTEX_OP_CMP_EQ} << 24);
  std::uint32_t unused = 0;
  return syscall(SYS_futex, &unused, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, nullptr,
                 address & ~std::uint64_t{3}, kAddNothing) >= 0;
}

/// Runs in the thread that wrote. Only system calls that a signal handler may make.
bool wasOurs(const siginfo_t& info) {
  if (info.si_code != SEGV_ACCERR) return false;
  const auto address = reinterpret_cast<std::uint64_t>(info.si_addr);
  for (;;) {
    const std::uint64_t before = freezes.load();
    while (isFrozen(address)) sched_yield();
    if (isWritable(address)) return true;  // also when the range thawed before the signal came
    if (freezes.load() == before) return false;  // no later freeze made it read-only
  }
}

void onFault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool ours = wasOurs(*info);
  errno = error;
  if (ours) return;  // the write is repeated
  if ((earlier.sa_flags & SA_SIGINFO) != 0)
    earlier.sa_sigaction(signal, info, context);
  else if (earlier.sa_handler == SIG_DFL || earlier.sa_handler == SIG_IGN)
    ::signal(signal, SIG_DFL);  // the access is repeated, and ends the process
  else
    earlier.sa_handler(signal);
}

/// Installs the handler. It stays, because a thread may have faulted before the range thawed and
/// get its signal later. A program that installs its own handler later calls ours if it is careful.
bool catchFaults() {
  struct sigaction current {};
  if (sigaction(SIGSEGV, nullptr, &current) != 0) return false;
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == onFault) return true;
  earlier = current;
  struct sigaction ours {};
  ours.sa_sigaction = onFault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  return sigaction(SIGSEGV, &ours, nullptr) == 0;
}

}  // namespace

WriteFreeze::WriteFreeze(std::uint64_t begin, std::uint64_t end,
                         const std::vector<wire::MemoryMap>& maps)
    : begin_(begin), end_(end), maps_(maps) {
  if (!catchFaults()) return;
  frozenBegin.store(begin);
  frozenEnd.store(end);
  ++freezes;  // after the range and before its protection, for wasOurs()
  ok_ = protect(PROT_WRITE);
}

bool WriteFreeze::protect(int removed) const {
  bool done = true;
  for (const wire::MemoryMap& map : maps_) {
    if ((map.protection & PROT_WRITE) == 0) continue;
    const std::uint64_t from = std::max(map.begin, begin_);
    const std::uint64_t to = std::min(map.end, end_);
    done =
        mprotect(reinterpret_cast<void*>(from), to - from, map.protection & ~removed) == 0 && done;
  }
  return done;
}

WriteFreeze::~WriteFreeze() {
  protect(0);
  frozenEnd.store(0);
  frozenBegin.store(0);
}

}  // namespace interposer
