#include "native/launcher/room.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace launcher {

namespace {

namespace fs = std::filesystem;

/// Path of the host's root while the room is set up.
constexpr const char* kHost = "/host";
/// Directories and files of the loader. Debian's driver package has links through the last one.
constexpr const char* kLibraries[] = {"/lib",       "/lib64",           "/usr/lib",
                                      "/usr/lib64", "/etc/ld.so.cache", "/etc/alternatives"};
constexpr const char* kDevices[] = {"null", "zero", "full", "random", "urandom"};
constexpr const char* kTmpfs = "mode=1777,size=16m,nr_inodes=4096";
constexpr unsigned long kHarmless = MS_NOSUID | MS_NODEV;
constexpr unsigned long kLibrary = kHarmless | MS_RDONLY | MS_REC;

std::string failed(const std::string& what) {
  return "cannot " + what + ": " + std::strerror(errno);
}

struct Item {
  /// real path without links, because absolute links would break under the new root
  fs::path from;
  fs::path to;          ///< its path on the host and in the room
  unsigned long flags;  ///< flags of mount(2)
};

/// The mounts of the room, resolved under the host's root.
class Plan {
 public:
  /// Adds a path. Skips it if it does not exist, or is inside of an item already added.
  void add(const fs::path& path, unsigned long flags) { add(path, path, flags); }
  void add(const fs::path& path, const fs::path& to, unsigned long flags) {
    std::error_code missing;
    const fs::path from = fs::canonical(path, missing);
    const auto covers = [&](const Item& item) {
      return std::ranges::mismatch(item.to, to).in1 == item.to.end();
    };
    if (!missing && std::ranges::none_of(items, covers)) items.push_back({from, to, flags});
  }
  /// Adds a readable path. For a file, adds its directory and that of its link target.
  void addReadable(const fs::path& path) {
    std::error_code missing;
    if (fs::is_directory(path, missing)) return add(path, kLibrary);
    add(path.parent_path(), kLibrary);
    add(fs::canonical(path, missing).parent_path(), kLibrary);
  }

  std::vector<Item> items;
};

Plan planOf(const Room& room) {
  Plan plan;
  for (const std::string& path : room.writable) plan.add(path, kHarmless | MS_NOEXEC);
  for (const char* path : kLibraries) plan.add(path, kLibrary);
  for (const std::string& path : room.readable) plan.addReadable(path);
  for (const fs::path& file : deviceFiles(room.devices))
    plan.add(file, "/dev" / file.filename(), MS_REC);
  for (const fs::path& file : room.openable) plan.add(file, MS_REC);
  plan.add("/sys", kHarmless | MS_NOEXEC | MS_RDONLY);
  return plan;
}

std::string show(const Item& item) {
  const fs::path host = kHost + item.from.string();
  std::error_code none;
  if (fs::is_directory(host, none)) {
    fs::create_directories(item.to, none);
  } else {
    fs::create_directories(item.to.parent_path(), none);
    mknod(item.to.c_str(), S_IFREG | 0444, 0);
  }
  if (mount(host.c_str(), item.to.c_str(), nullptr, MS_BIND | (item.flags & MS_REC), nullptr) != 0)
    return failed("show " + item.to.string());
  const unsigned long protection = item.flags & ~static_cast<unsigned long>(MS_REC);
  if (protection == 0 ||
      mount(nullptr, item.to.c_str(), nullptr, MS_REMOUNT | MS_BIND | protection, nullptr) == 0)
    return {};
  return failed("protect " + item.to.string());
}

/// Makes a new tmpfs the root of new namespaces. The old root is then at kHost, with nothing
/// mounted over it.
std::string moveIntoTmpfs() {
  if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) != 0)
    return failed("leave the host's namespaces");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return failed("keep its mounts to itself");
  constexpr const char* kAnywhere = "/proc";
  if (mount("tmpfs", kAnywhere, "tmpfs", kHarmless, "mode=755,size=16m,nr_inodes=4096") != 0)
    return failed("create a root");
  const std::string old = std::string(kAnywhere) + kHost;
  if (mkdir(old.c_str(), 0700) != 0 || syscall(SYS_pivot_root, kAnywhere, old.c_str()) != 0 ||
      chdir("/") != 0)
    return failed("change its root");
  return {};
}

/// Mounts a proc without processes of other users (Linux 5.8). On older kernels it shows the host's
/// proc, because hidepid would apply to the host too.
std::string showProcesses() {
  mkdir("/proc", 0755);
  if (mount("proc", "/proc", "proc", kHarmless | MS_NOEXEC, "hidepid=invisible") == 0) return {};
  return show({"/proc", "/proc", MS_REC});
}

std::string furnish(const Plan& plan) {
  mkdir("/tmp", 0755);
  if (mount("tmpfs", "/tmp", "tmpfs", kHarmless, kTmpfs) != 0) return failed("make /tmp");
  for (const Item& item : plan.items)
    if (std::string problem = show(item); !problem.empty()) return problem;
  if (std::string problem = showProcesses(); !problem.empty()) return problem;
  if (umount2(kHost, MNT_DETACH) != 0) return failed("leave the host's files");
  rmdir(kHost);
  return {};
}

/// As a worker does by itself (native/worker/isolation/confinement.h).
std::string hide(const std::string& hidden, const std::string& shown) {
  if (hidden.empty()) return {};
  const bool done = shown.empty()
                        ? mount("tmpfs", hidden.c_str(), "tmpfs", kHarmless | MS_NOEXEC | MS_RDONLY,
                                "size=4k,mode=555") == 0
                        : mount(shown.c_str(), hidden.c_str(), nullptr, MS_BIND, nullptr) == 0;
  return done ? std::string() : failed("hide " + hidden);
}

/// A file of another mount could not be opened again by its path (CRIU).
std::string reopenNull() {
  for (const int file : {0, 1, 2}) {
    struct stat about {};
    if (fstat(file, &about) != 0 || !S_ISCHR(about.st_mode) || about.st_rdev != makedev(1, 3))
      continue;
    const int again = open("/dev/null", (fcntl(file, F_GETFL) & O_ACCMODE) | O_CLOEXEC);
    if (again < 0 || dup2(again, file) < 0) return failed("open /dev/null");
    close(again);
  }
  return {};
}

}  // namespace

std::vector<fs::path> deviceFiles(const std::string& directory) {
  std::vector<fs::path> files;
  for (const char* name : kDevices) files.push_back(fs::path("/dev") / name);
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, none))
    if (entry.path().filename().string().starts_with("nvidia")) files.push_back(entry.path());
  return files;
}

std::string enter(const Room& room) {
  const mode_t mask = umask(0022);
  const Plan plan = planOf(room);
  std::string problem = moveIntoTmpfs();
  if (problem.empty()) problem = furnish(plan);
  if (problem.empty()) problem = hide(room.hidden, room.shown);
  if (problem.empty()) problem = reopenNull();
  umask(mask);
  return problem;
}

}  // namespace launcher
