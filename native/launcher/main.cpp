// nvidia-virtual-launcher: starts a program in the host's mounts and a cgroup of its own, so that
// it outlives the container of its parent. A failure to set the cgroup or the OOM score is reported
// on stderr, and the program starts anyway.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "native/launcher/cgroup.h"
#include "native/launcher/files.h"
#include "native/launcher/oom_score.h"
#include "native/launcher/room.h"

namespace {

struct Options {
  const char* mounts = nullptr;     ///< file of the mount namespace to enter; null: none
  const char* cgroups = nullptr;    ///< file of the cgroup namespace
  const char* libraries = nullptr;  ///< LD_LIBRARY_PATH of the program; null: unchanged
  const char* devices = nullptr;    ///< directory shown as /dev; null: the host's
  launcher::Room room;              ///< the host's files that the program sees; empty: all
  pid_t client = 0;                 ///< a process of the pod
  bool keepsOomScore = false;       ///< keeps the OOM score of the parent
  bool chargesNode = false;         ///< runs only if the node's cgroup pays for its memory
  pid_t move = 0;   ///< a running process to move; 0: this one, which becomes the program
  std::string pod;  ///< UID of the pod; empty: the node itself
  char** program = nullptr;
};

constexpr const char* kUsage =
    "nvidia-virtual-launcher is started by gpu-proxy with [--mounts FILE --cgroups FILE] "
    "[--libraries DIRECTORY] [--devices DIRECTORY] "
    "[--read PATH]... [--write PATH]... [--oom-score keep] [--charge node] "
    "[--pod UID --client PID] (--move PID | -- PROGRAM [ARGUMENT...])\n";

bool parseNumber(std::string_view text, pid_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

bool isUid(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

bool take(Options& options, std::string_view name, const char* value) {
  if (name == "--mounts") return options.mounts = value, true;
  if (name == "--libraries") return options.libraries = value, true;
  if (name == "--devices") return options.devices = value, true;
  if (name == "--read") return options.room.readable.emplace_back(value), true;
  if (name == "--write") return options.room.writable.emplace_back(value), true;
  if (name == "--cgroups") return options.cgroups = value, true;
  if (name == "--client") return parseNumber(value, options.client);
  if (name == "--move") return parseNumber(value, options.move);
  if (name == "--oom-score" && std::string_view(value) == "keep")
    return options.keepsOomScore = true, true;
  if (name == "--charge" && std::string_view(value) == "node")
    return options.chargesNode = true, true;
  if (name == "--pod" && isUid(value)) return options.pod = value, true;
  return false;
}

bool parse(int count, char** arguments, Options& options) {
  int i = 1;
  for (; i + 1 < count && std::string_view(arguments[i]) != "--"; i += 2) {
    if (!take(options, arguments[i], arguments[i + 1])) return false;
  }
  if (i + 1 < count) options.program = arguments + i + 1;
  const bool single = (options.program != nullptr) != (options.move > 0);
  return single && options.pod.empty() == (options.client == 0) &&
         (options.mounts == nullptr) == (options.cgroups == nullptr);
}

void say(const std::string& what) {
  std::fprintf(stderr, "nvidia-virtual-launcher: %s\n", what.c_str());
}

/// Opens both files first, because /proc changes with the mount namespace.
bool enterNamespaces(const char* mounts, const char* cgroups) {
  const int mountFile = open(mounts, O_RDONLY | O_CLOEXEC);
  const int cgroupFile = open(cgroups, O_RDONLY | O_CLOEXEC);
  const bool opened = mountFile >= 0 && cgroupFile >= 0;
  if (opened && setns(cgroupFile, CLONE_NEWCGROUP) == 0 && setns(mountFile, CLONE_NEWNS) == 0 &&
      chdir("/") == 0)
    return true;
  say(std::string("cannot enter the namespaces of the host: ") + std::strerror(errno) +
      "; gpu-proxy needs the capabilities SYS_ADMIN, SYS_CHROOT and SYS_PTRACE, and the pid "
      "namespace of the host");
  return false;
}

/// Whether the node's cgroup pays for the memory of this process.
bool isChargedToNode() {
  const std::string path = launcher::memoryCgroup(launcher::readFile("/proc/self/cgroup"));
  if (path == launcher::workerCgroup("", "")) return true;
  say("the memory would be charged to the cgroup " + path);
  return false;
}

bool hasRoom(const Options& options) {
  return !options.room.readable.empty() || !options.room.writable.empty();
}

bool enterRoom(Options& options) {
  if (options.devices != nullptr) options.room.devices = options.devices;
  const std::string problem = launcher::enter(options.room);
  if (!problem.empty())
    say("cannot confine a worker, so it is not started: " + problem +
        "; gpu-proxy needs the capability SYS_ADMIN");
  return problem.empty();
}

/// Shows a directory as /dev in a private mount namespace, so that the host's /dev stays unchanged.
/// Unmounts of the host still propagate into it.
bool showDevices(const char* directory) {
  if (unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
      mount(directory, "/dev", nullptr, MS_BIND | MS_REC, nullptr) == 0) {
    return true;
  }
  say(std::string("cannot show ") + directory + " as /dev: " + std::strerror(errno));
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  if (!parse(count, arguments, options)) return std::fputs(kUsage, stderr), 2;
  if (options.mounts != nullptr && !enterNamespaces(options.mounts, options.cgroups)) return 126;
  if (options.devices != nullptr && !hasRoom(options) && !showDevices(options.devices)) return 126;
  const std::string unadjusted =
      options.keepsOomScore ? std::string() : launcher::takeOomScore(options.move, options.client);
  if (!unadjusted.empty()) say(unadjusted + "; continuing without it");
  for (const std::string& problem : launcher::place(options.move, options.client, options.pod))
    say(problem + "; continuing without it");
  if (options.move > 0) return 0;
  if (options.chargesNode && !isChargedToNode()) return 126;
  if (hasRoom(options) && !enterRoom(options)) return 126;
  if (options.libraries != nullptr) setenv("LD_LIBRARY_PATH", options.libraries, 1);
  execv(options.program[0], options.program);
  say(std::string("cannot start ") + options.program[0] + ": " + std::strerror(errno));
  return 127;
}
