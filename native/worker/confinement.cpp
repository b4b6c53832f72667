#include "native/worker/confinement.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "native/worker/seccomp.h"

namespace worker {

namespace {

bool hasCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return true;
  return (data[0].effective | data[1].effective | data[0].permitted | data[1].permitted) != 0;
}

/// The C library does each of these on all threads.
bool change(uid_t user) {
  const gid_t group = user;
  return setgroups(0, nullptr) == 0 && setresgid(group, group, group) == 0 && setresuid(user, user, user) == 0;
}

}  // namespace

std::string becomeUser(uid_t user) {
  if (geteuid() == user && getuid() == user) return {};
  if (!change(user))
    return "the worker cannot become user " + std::to_string(user) + ": " + std::strerror(errno) + "; is gpu-proxy not root?";
  if (hasCapabilities())
    return "the worker kept capabilities as user " + std::to_string(user) + "; start gpu-proxy without SECBIT_NO_SETUID_FIXUP";
  return {};
}

std::string confine() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return std::string("the system knows no PR_SET_NO_NEW_PRIVS: ") + std::strerror(errno);
  return denySystemCalls() ? std::string() : std::string("the system takes no seccomp filter: ") + std::strerror(errno);
}

}  // namespace worker
