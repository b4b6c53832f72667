#include "native/worker/isolation/seccomp.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace worker {

namespace {

// System calls that older headers lack. The numbers are the same on all architectures.
enum Newer : long {
  kIoUringSetup = 425,
  kIoUringEnter,
  kIoUringRegister,
  kOpenTree,
  kMoveMount,
  kFsopen,
  kFsconfig,
  kFsmount,
  kFspick
};
constexpr long kPidfdSendSignal = 424;
constexpr long kClone3 = 435;
constexpr long kPidfdGetfd = 438;
constexpr long kMountSetattr = 442;
constexpr std::uint32_t kX32 = 0x40000000;

constexpr long kDenied[] = {
    // executing programs, access to other processes
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, kPidfdGetfd,
    SYS_kcmp,
    // other processes: they could meddle with what examines or writes this one
    SYS_fork, SYS_vfork, SYS_tkill, kPidfdSendSignal,
    // namespaces, file systems, and files by handle
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_unshare, kOpenTree,
    kMoveMount, kFsopen, kFsconfig, kFsmount, kFspick, kMountSetattr, SYS_open_by_handle_at,
    SYS_name_to_handle_at, SYS_quotactl, SYS_swapon, SYS_swapoff, SYS_fanotify_init,
    // kernel interfaces with a history of vulnerabilities
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key,
    kIoUringSetup, kIoUringEnter, kIoUringRegister,
    // control of the machine
    SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module,
    SYS_reboot, SYS_iopl, SYS_ioperm, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime,
    SYS_adjtimex, SYS_sethostname, SYS_setdomainname, SYS_acct, SYS_syslog, SYS_vhangup,
    SYS_personality};

class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    code_.push_back({BPF_JMP | BPF_K | BPF_JEQ, 1, 0,
                     AUDIT_ARCH_X86_64});  // 32-bit code uses other call numbers
    answer(EPERM);
    load(offsetof(seccomp_data, nr));
    skipUnless(BPF_JGE, kX32, [this] { answer(EPERM); });
  }

  void deny(long call, int error = EPERM) {
    skipUnless(BPF_JEQ, static_cast<std::uint32_t>(call), [&] { answer(error); });
  }

  /// Denies the call if the lower 32 bits of its first argument contain one of these flags.
  void denyFlags(long call, std::uint32_t flags) {
    onArgument(call, [&] { skipUnless(BPF_JSET, flags, [this] { answer(EPERM); }); });
  }

  /// Denies the call unless the lower 32 bits of its first argument contain one of these flags.
  void requireFlags(long call, std::uint32_t flags) {
    onArgument(call, [&] {
      add(BPF_JMP | BPF_K | BPF_JSET, flags);
      code_.back().jt = 1;
      answer(EPERM);
    });
  }

  /// Denies the call unless the lower 32 bits of its first argument equal `value`.
  void denyAllBut(long call, std::uint32_t value) {
    onArgument(call, [&] {
      skipUnless(BPF_JEQ, value, [this] { add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); });
      answer(EPERM);
    });
  }

  /// Denies the call if the lower 32 bits of its second argument equal one of these values.
  void denyCommands(long call, std::initializer_list<std::uint32_t> values) {
    onArgument(
        call,
        [&] {
          for (const std::uint32_t value : values)
            skipUnless(BPF_JEQ, value, [this] { answer(EPERM); });
        },
        1);
  }

  bool install() {
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
  }

 private:
  void add(std::uint16_t operation, std::uint32_t operand) {
    code_.push_back({operation, 0, 0, operand});
  }
  void load(std::uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void answer(int error) {
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
  }

  template <class Body>
  void skipUnless(std::uint16_t comparison, std::uint32_t operand, Body body) {
    const std::size_t jump = code_.size();
    add(static_cast<std::uint16_t>(BPF_JMP | BPF_K | comparison), operand);
    body();
    code_[jump].jf = static_cast<std::uint8_t>(code_.size() - jump - 1);
  }

  template <class Body>
  void onArgument(long call, Body body, std::size_t argument = 0) {
    skipUnless(BPF_JEQ, static_cast<std::uint32_t>(call), [&] {
      load(static_cast<std::uint32_t>(offsetof(seccomp_data, args) + argument * sizeof(__u64)));
      body();
      load(offsetof(seccomp_data, nr));
    });
  }

  std::vector<sock_filter> code_;
};

constexpr std::uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

}  // namespace

bool denySystemCalls() {
  Filter filter;
  for (const long call : kDenied) filter.deny(call);
  filter.deny(kClone3, ENOSYS);
  filter.requireFlags(SYS_clone, CLONE_THREAD);
  filter.denyFlags(SYS_clone, kNamespaces);
  filter.denyAllBut(SYS_socket, AF_UNIX);
  filter.denyAllBut(SYS_socketpair, AF_UNIX);
  // CRIU, which writes this process, has the same user.
  for (const long call : {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo})
    filter.denyAllBut(call, static_cast<std::uint32_t>(getpid()));
  // A file sends its owner a signal of choice.
  filter.denyCommands(SYS_fcntl, {F_SETOWN, F_SETOWN_EX, F_SETSIG});
  filter.denyCommands(SYS_ioctl, {FIOSETOWN, SIOCSPGRP});
  return filter.install();
}

}  // namespace worker
