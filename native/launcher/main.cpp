// nvidia-virtual-launcher: starts a program in the host's mounts and a cgroup of its own, so that
// it outlives the container of its parent. A failure to set the cgroup or the OOM score is reported
// on stderr, and the program starts anyway. What tenants reach does not start without its filter of
// devices.
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
#include <utility>
#include <vector>

#include "native/launcher/cgroup.h"
#include "native/launcher/files.h"
#include "native/launcher/namespaces.h"
#include "native/launcher/oom_score.h"
#include "native/launcher/room.h"

namespace {

struct Options {
  const char* mounts = nullptr;      ///< file of the mount namespace to enter; null: none
  const char* cgroups = nullptr;     ///< file of the cgroup namespace
  const char* libraries = nullptr;   ///< LD_LIBRARY_PATH of the program; null: unchanged
  const char* devices = nullptr;     ///< directory shown as /dev; null: the host's /dev
  launcher::Room room;               ///< the host's files that the program sees; empty: all
  pid_t client = 0;                  ///< a process of the pod
  bool servesTenants = false;        ///< keeps the OOM score of the parent
  bool chargesNode = false;          ///< runs only if the node's cgroup pays for its memory
  pid_t enter = 0;                   ///< a process whose room is entered; 0: none
  pid_t user = 0;                    ///< the real user and group; 0: unchanged
  const char* kernelData = nullptr;  ///< directory in which CRIU keeps what it knows; null: none
  pid_t move = 0;   ///< a running process to move; 0: this one, which becomes the program
  std::string pod;  ///< UID of the pod; empty: the node itself
  char** program = nullptr;
};

constexpr const char* kUsage =
    "nvidia-virtual-launcher is started by gpu-proxy with [--mounts FILE --cgroups FILE] "
    "[--libraries DIRECTORY] [--devices DIRECTORY] "
    "[--read PATH]... [--write PATH]... [--open DEVICE]... [--hide DIRECTORY [--show DIRECTORY]] "
    "[--enter PID] "
    "[--kernel-data DIRECTORY] [--real-user UID] [--serve tenants] [--charge node] "
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
  if (name == "--devices") return options.room.devices = options.devices = value, true;
  if (name == "--read") return options.room.readable.emplace_back(value), true;
  if (name == "--write") return options.room.writable.emplace_back(value), true;
  if (name == "--open") return options.room.openable.emplace_back(value), true;
  if (name == "--cgroups") return options.cgroups = value, true;
  if (name == "--hide") return options.room.hidden = value, true;
  if (name == "--show") return options.room.shown = value, true;
  if (name == "--enter") return parseNumber(value, options.enter);
  if (name == "--real-user") return parseNumber(value, options.user);
  if (name == "--kernel-data") return options.kernelData = value, true;
  if (name == "--client") return parseNumber(value, options.client);
  if (name == "--move") return parseNumber(value, options.move);
  if (name == "--serve" && std::string_view(value) == "tenants")
    return options.servesTenants = true, true;
  if (name == "--charge" && std::string_view(value) == "node")
    return options.chargesNode = true, true;
  if (name == "--pod" && isUid(value)) return options.pod = value, true;
  return false;
}

bool hasRoom(const Options& options) {
  return !options.room.readable.empty() || !options.room.writable.empty();
}

/// A worker, or CRIU in the room of one.
bool isConfined(const Options& options) {
  return hasRoom(options) || options.enter > 0 || options.move > 0;
}

bool parse(int count, char** arguments, Options& options) {
  int i = 1;
  for (; i + 1 < count && std::string_view(arguments[i]) != "--"; i += 2) {
    if (!take(options, arguments[i], arguments[i + 1])) return false;
  }
  if (i + 1 < count) options.program = arguments + i + 1;
  const bool single = (options.program != nullptr) != (options.move > 0);
  return single && options.pod.empty() == (options.client == 0) &&
         (options.pod.empty() || isConfined(options)) &&
         !(options.servesTenants && isConfined(options)) &&
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
  if (path == launcher::kNodeCgroup) return true;
  say("the memory would be charged to the cgroup " + path);
  return false;
}

bool place(const Options& options) {
  std::vector<std::string> problems;
  if (isConfined(options) || options.servesTenants) {
    const auto devices =
        launcher::devicesIn(launcher::deviceFiles(options.room.devices), options.room.openable);
    auto placement = options.servesTenants ? launcher::placeService(devices)
                                           : launcher::placeWorker(options.move, options.client,
                                                                   options.pod, devices);
    if (!placement.unfiltered.empty()) {
      const std::string what = options.servesTenants ? options.program[0] : "a worker";
      say("cannot confine " + what + ", so it is not started: " + placement.unfiltered +
          "; gpu-proxy needs the capabilities SYS_ADMIN and NET_ADMIN");
      return false;
    }
    problems = std::move(placement.problems);
  } else {
    problems = launcher::placeInNode();
  }
  for (const std::string& problem : problems) say(problem + "; continuing without it");
  return true;
}

bool enterRoom(Options& options) {
  const std::string problem = launcher::enter(options.room);
  if (!problem.empty())
    say("cannot confine a worker, so it is not started: " + problem +
        "; gpu-proxy needs the capability SYS_ADMIN");
  return problem.empty();
}

/// CRIU works in the room of a worker: a new one, or that of a process.
bool prepareForCriu(Options& options, const launcher::Namespaces& theirs) {
  if (options.kernelData == nullptr) return !hasRoom(options) || enterRoom(options);
  if (!hasRoom(options) && options.enter == 0) {
    const std::string problem = launcher::showAsRun(options.kernelData);
    if (!problem.empty()) say(problem);
    return problem.empty();
  }
  const launcher::KernelData data(options.kernelData);
  if (hasRoom(options) && !enterRoom(options)) return false;
  std::string problem = options.enter > 0 ? theirs.enter() : std::string();
  if (problem.empty()) problem = data.write();
  if (problem.empty()) problem = launcher::leaveGroups();
  if (problem.empty() && options.user > 0)
    problem = launcher::becomeReally(static_cast<uid_t>(options.user));
  if (!problem.empty()) say(problem);
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
  launcher::Namespaces theirs;
  if (options.enter > 0)
    if (const std::string problem = theirs.open(options.enter); !problem.empty())
      return say(problem), 126;
  if (options.mounts != nullptr && !enterNamespaces(options.mounts, options.cgroups)) return 126;
  const std::string unadjusted =
      options.servesTenants ? std::string() : launcher::takeOomScore(options.move, options.client);
  if (!unadjusted.empty()) say(unadjusted + "; continuing without it");
  if (!place(options)) return 126;
  if (options.devices != nullptr && !isConfined(options) && !showDevices(options.devices))
    return 126;
  if (options.move > 0) return 0;
  if (options.chargesNode && !isChargedToNode()) return 126;
  if (!prepareForCriu(options, theirs)) return 126;
  if (options.libraries != nullptr) setenv("LD_LIBRARY_PATH", options.libraries, 1);
  execv(options.program[0], options.program);
  say(std::string("cannot start ") + options.program[0] + ": " + std::strerror(errno));
  return 127;
}
