// A confined worker has lost its rights on every thread, and what it needs still works. Each case
// runs in a process of its own.
#include "native/worker/isolation/confinement.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "test/unit/program.h"

namespace {

constexpr uid_t kUser = 65534;

bool refused(long result) { return result == -1 && errno == EPERM; }

/// A line of /proc/thread-self/status.
std::string statusOf(const std::string& name) {
  std::ifstream status("/proc/thread-self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "?";
}

void checkRefusals() {
  char* const none[] = {nullptr};
  iovec nothing{};
  CHECK(refused(execve("/bin/true", none, none)));
  CHECK(refused(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)));
  CHECK(refused(mount("none", "/mnt", "tmpfs", 0, nullptr)));
  CHECK(refused(unshare(CLONE_NEWUSER)));
  CHECK(refused(setns(0, 0)));
  CHECK(refused(process_vm_readv(getpid(), &nothing, 1, &nothing, 1, 0)));
  CHECK(refused(socket(AF_INET, SOCK_STREAM, 0)));
  CHECK(refused(socket(AF_NETLINK, SOCK_RAW, 0)));
  int pair[2];
  CHECK(refused(socketpair(AF_TIPC, SOCK_SEQPACKET, 0, pair)));
  for (const long call :
       {SYS_bpf, SYS_keyctl, SYS_perf_event_open, SYS_userfaultfd, SYS_finit_module, SYS_reboot,
        SYS_open_by_handle_at, SYS_kexec_load, 425 /* io_uring_setup */, 438 /* pidfd_getfd */})
    CHECK(refused(syscall(call, 0, 0, 0, 0, 0)));
  CHECK(refused(syscall(SYS_getpid | 0x40000000)));
  for (const int flags : {SIGCHLD, CLONE_VM | CLONE_FILES, CLONE_NEWUSER | SIGCHLD})
    CHECK(refused(syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr)));
  CHECK(refused(fork()));
  CHECK(refused(syscall(SYS_vfork)));
  CHECK(refused(kill(getppid(), 0)));
  CHECK(refused(syscall(SYS_tgkill, getppid(), getppid(), 0)));
  CHECK(refused(syscall(SYS_tkill, gettid(), 0)));
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  pid_t parent = getppid();
  const f_owner_ex owner{F_OWNER_PID, parent};
  CHECK(refused(fcntl(pair[0], F_SETOWN, parent)));
  CHECK(refused(fcntl(pair[0], F_SETOWN_EX, &owner)));
  CHECK(refused(fcntl(pair[0], F_SETSIG, SIGKILL)));
  CHECK(refused(ioctl(pair[0], FIOSETOWN, &parent)));
  CHECK(refused(ioctl(pair[0], SIOCSPGRP, &parent)));
  CHECK(statusOf("NoNewPrivs") == "1");
  CHECK(statusOf("Seccomp") == "2");
}

void checkWhatStays() {
  std::atomic<bool> ran{false};
  std::thread([&] { ran = true; }).join();
  CHECK(ran);
  CHECK(kill(getpid(), 0) == 0);
  CHECK(pthread_kill(pthread_self(), 0) == 0);
  const int local = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(local >= 0);
  CHECK(fcntl(local, F_SETFL, O_NONBLOCK) == 0);
  int none = 0;
  CHECK(ioctl(local, FIONREAD, &none) == 0);
}

/// Runs `body` on a thread that is older than `change`, as those of a driver are.
void onOlderThread(const std::function<void()>& change, const std::function<void()>& body) {
  std::atomic<int> turn{0};
  std::thread thread([&] {
    turn.wait(0);
    body();
  });
  change();
  turn = 1;
  turn.notify_all();
  thread.join();
}

void checkUser() {
  CHECK(getuid() == kUser);
  CHECK(geteuid() == kUser);
  CHECK(getgid() == kUser);
  CHECK(getgroups(0, nullptr) == 0);
  for (const char* set : {"CapPrm", "CapEff", "CapAmb"}) CHECK(statusOf(set) == "0000000000000000");
  CHECK(statusOf("Uid") == "65534\t65534\t65534\t65534");
  CHECK(statusOf("Gid") == "65534\t65534\t65534\t65534");
  CHECK(refused(setuid(0)));
}

/// Acts as a kernel, or a container's filter, that refuses filters.
void denySeccomp() {
  sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                        {BPF_JMP | BPF_K | BPF_JEQ, 0, 1, SYS_seccomp},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog program{4, code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

void checkNoDump() {
  worker::refuseCoreDumps();
  rlimit limit{};
  CHECK(getrlimit(RLIMIT_CORE, &limit) == 0);
  CHECK(limit.rlim_cur <= 1);
  CHECK(limit.rlim_max <= 1);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    std::abort();
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(!WCOREDUMP(status));
}

TEST_CASE("a worker dumps no core") { unit::inChild(checkNoDump); }

TEST_CASE("confine() returns an error where no seccomp filter can be installed") {
  unit::inChild([] {
    denySeccomp();
    CHECK(worker::confine().find("does not accept the seccomp filter") != std::string::npos);
  });
}

TEST_CASE("system calls are refused on all threads of a confined worker") {
  unit::inChild([] {
    onOlderThread([] { CHECK(worker::confine().empty()); }, checkRefusals);
    checkRefusals();
    checkWhatStays();
  });
}

TEST_CASE("a worker becomes another user on all threads, once") {
  if (geteuid() == 0) {
    unit::inChild([] {
      onOlderThread([] { CHECK(worker::becomeUser(kUser).empty()); }, checkUser);
      checkUser();
      CHECK(worker::becomeUser(kUser).empty());
      CHECK(worker::becomeUser(kUser - 1).find("65533") != std::string::npos);
    });
  } else {
    CHECK(!worker::becomeUser(kUser).empty());
  }
}

}  // namespace
