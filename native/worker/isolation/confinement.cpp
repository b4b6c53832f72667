#include "native/worker/isolation/confinement.h"

#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "native/worker/descriptors.h"
#include "native/worker/isolation/seccomp.h"

namespace worker {

namespace {

bool hasCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return true;
  return (data[0].effective | data[1].effective | data[0].permitted | data[1].permitted) != 0;
}

/// Thread-safe: the C library applies each of these calls to all threads.
bool change(uid_t user) {
  const gid_t group = user;
  return setgroups(0, nullptr) == 0 && setresgid(group, group, group) == 0 &&
         setresuid(user, user, user) == 0;
}

/// The driver opens its pipe by its path for a checkpoint (580.159). It may have made it when this
/// process had another user. A number up to kControl is a file of gpu-proxy.
bool givePipes(uid_t user) {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return false;
  bool done = true;
  while (const dirent* entry = readdir(directory)) {
    const int file = std::atoi(entry->d_name);
    struct stat about {};
    if (file > kControl && fstat(file, &about) == 0 && S_ISFIFO(about.st_mode))
      done = fchown(file, user, user) == 0 && done;
  }
  closedir(directory);
  return done;
}

}  // namespace

/// Limits core dumps to 1 byte. The kernel then writes no dump and starts no program of
/// core_pattern; for the latter it ignores a limit of 0.
void refuseCoreDumps() {
  for (const rlim_t bytes : {1, 0}) {
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_CORE, &limit) == 0) return;
  }
}

std::string hideAllocations(const std::string& allocations, const std::string& cache) {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  const int hidden =
      cache.empty()
          ? mount("tmpfs", allocations.c_str(), "tmpfs", kFlags | MS_RDONLY, "size=4k,mode=555")
          : mount(cache.c_str(), allocations.c_str(), nullptr, MS_BIND, nullptr);
  return hidden == 0 ? std::string()
                     : "the worker cannot hide other allocations from itself: " +
                           std::string(std::strerror(errno));
}

std::string becomeUser(uid_t user) {
  if (geteuid() == user && getuid() == user) return {};
  if (!givePipes(user) || !change(user))
    return "the worker cannot become user " + std::to_string(user) + ": " + std::strerror(errno) +
           "; is gpu-proxy not root?";
  if (hasCapabilities())
    return "the worker kept capabilities as user " + std::to_string(user) +
           "; start gpu-proxy without SECBIT_NO_SETUID_FIXUP";
  return {};
}

std::string confine() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return std::string("the kernel does not support PR_SET_NO_NEW_PRIVS: ") + std::strerror(errno);
  return denySystemCalls() ? std::string()
                           : std::string("the kernel does not accept the seccomp filter: ") +
                                 std::strerror(errno);
}

}  // namespace worker
