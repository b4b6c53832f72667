#include "native/launcher/namespaces.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "native/launcher/files.h"

namespace launcher {

namespace {

/// The one of mounts is last: paths change with it.
constexpr const char* kNames[] = {"net", "ipc", "uts", "mnt"};

std::string failed(const std::string& what) {
  return "cannot " + what + ": " + std::strerror(errno);
}

}  // namespace

std::string Namespaces::open(pid_t process) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::string path = "/proc/" + std::to_string(process) + "/ns/" + kNames[i];
    files_[i] = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (files_[i] < 0) return failed("open " + path);
  }
  return {};
}

std::string Namespaces::enter() const {
  for (const int file : files_)
    if (setns(file, 0) != 0) return failed("enter the room of a worker");
  return chdir("/") == 0 ? std::string() : failed("enter its root");
}

KernelData::KernelData(const std::string& directory)
    : content_(readFile(directory + "/criu.kdat")) {}

std::string KernelData::write() const {
  if (content_.empty()) return {};
  constexpr const char* kFile = "/run/criu.kdat";
  mkdir("/run", 0755);
  const int file = ::open(kFile, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  const bool written = file >= 0 && ::write(file, content_.data(), content_.size()) ==
                                        static_cast<ssize_t>(content_.size());
  std::string problem = written ? std::string() : failed(std::string("write ") + kFile);
  close(file);
  return problem;
}

std::string showAsRun(const char* directory) {
  const bool shown = unshare(CLONE_NEWNS) == 0 &&
                     mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
                     mount(directory, "/run", nullptr, MS_BIND, nullptr) == 0;
  return shown ? std::string() : failed(std::string("show ") + directory + " as /run");
}

std::string leaveGroups() {
  return setgroups(0, nullptr) == 0 ? std::string() : failed("leave the groups of gpu-proxy");
}

std::string becomeReally(uid_t user) {
  constexpr auto kSame = static_cast<uid_t>(-1);
  if (setresgid(user, kSame, kSame) == 0 && setresuid(user, kSame, kSame) == 0) return {};
  return failed("have the real user " + std::to_string(user));
}

}  // namespace launcher
