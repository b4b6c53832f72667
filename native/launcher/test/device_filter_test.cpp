#include "native/launcher/device_filter.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "native/launcher/cgroup.h"
#include "native/launcher/files.h"
#include "test/unit/program.h"

using namespace launcher;

namespace {

constexpr Device kNull{1, 3, true, true};
constexpr Device kZero{1, 5, true, true};
constexpr Device kFull{1, 7, true, false};

/// A new cgroup; it is removed when its processes have ended.
class Cgroup {
 public:
  explicit Cgroup(const std::string& parent, const std::string& name)
      : directory(parent + "/" + name + std::to_string(getpid())) {
    CHECK(mkdir(directory.c_str(), 0755) == 0);
  }
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  ~Cgroup() {
    while (rmdir(directory.c_str()) != 0 && errno == EBUSY) std::this_thread::yield();
  }

  /// Whether a process in it may open the file.
  bool permits(const char* file, int flags) const {
    const pid_t child = fork();
    if (child == 0) {
      if (!writeFile(directory + "/cgroup.procs", "0")) _exit(2);
      _exit(open(file, flags) < 0 && errno == EPERM ? 1 : 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) <= 1);
    return status == 0;
  }

  const std::string directory;
};

using Filter = std::string (*)(const std::string&, const Devices&);

/// Calls `body` with the directory of each kind of hierarchy and its filter.
template <class Body>
void onEach(Body body) {
  if (getuid() != 0) return unit::skip("cgroups need root");
  unit::inChild([&] {
    REQUIRE(unshare(CLONE_NEWNS) == 0);
    REQUIRE(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
    for (const Hierarchy& one : parseMounts(readFile("/proc/self/mounts")))
      if (one.options.find("devices") != std::string::npos) body(one.directory, filterByList);
    REQUIRE(mount("none", "/mnt", "cgroup2", 0, nullptr) == 0);
    body("/mnt", filterByProgram);
  });
}

TEST_CASE("a cgroup permits the devices of its last filter, and no other") {
  onEach([](const std::string& parent, Filter filter) {
    const Cgroup cgroup(parent, "device-filter-test");
    CHECK(cgroup.permits("/dev/urandom", O_RDONLY));
    CHECK(filter(cgroup.directory, {kNull, kZero}).empty());
    CHECK(cgroup.permits("/dev/null", O_RDWR));
    CHECK(cgroup.permits("/dev/zero", O_RDWR));
    CHECK(!cgroup.permits("/dev/full", O_RDONLY));
    CHECK(!cgroup.permits("/dev/urandom", O_RDONLY));
    CHECK(filter(cgroup.directory, {kNull, kFull}).empty());
    CHECK(filter(cgroup.directory, {kNull, kFull}).empty());
    CHECK(cgroup.permits("/dev/null", O_RDWR));
    CHECK(!cgroup.permits("/dev/zero", O_RDWR));
    CHECK(cgroup.permits("/dev/full", O_RDONLY));
    CHECK(!cgroup.permits("/dev/full", O_RDWR));
  });
}

TEST_CASE("what a cgroup of v1 inherits is refused, and what its parent refuses stays so") {
  onEach([](const std::string& parent, Filter filter) {
    if (filter == filterByProgram) return;
    const Cgroup outer(parent, "device-filter-test");
    CHECK(writeFile(outer.directory + "/devices.deny", "a"));
    for (const char* right : {"b *:* m", "c 1:3 rwm", "c 1:9 rwm"})
      CHECK(writeFile(outer.directory + "/devices.allow", right));
    const Cgroup inner(outer.directory, "inner");
    CHECK(filter(inner.directory, {kNull, kZero}).empty());
    CHECK(readFile(inner.directory + "/devices.list") == "c 1:3 rw\n");
  });
}

TEST_CASE("processes that set the same filter at once disturb neither it nor each other") {
  onEach([](const std::string& parent, Filter filter) {
    const Cgroup cgroup(parent, "device-filter-test");
    for (int i = 0; i < 16; ++i) {
      if (fork() != 0) continue;
      bool works = true;
      for (int round = 0; round < 20; ++round) {
        const Devices devices = i % 2 == 0 ? Devices{kNull, kZero} : Devices{kNull, kFull};
        works = works && filter(cgroup.directory, devices).empty() &&
                cgroup.permits("/dev/null", O_RDWR) && !cgroup.permits("/dev/urandom", O_RDONLY);
      }
      _exit(works ? 0 : 1);
    }
    for (int i = 0, status = 0; i < 16; ++i) {
      CHECK(wait(&status) > 0);
      CHECK(status == 0);
    }
  });
}

TEST_CASE("a device may be opened as its node permits to others, or because root opens it") {
  if (getuid() != 0) return unit::skip("device nodes need root");
  char directory[] = "/tmp/device-filter-XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  const std::filesystem::path root(directory);
  const auto make = [&](const char* name, mode_t mode, unsigned minor) {
    std::filesystem::create_directories((root / name).parent_path());
    CHECK(mknod((root / name).c_str(), mode, makedev(240, minor)) == 0);
    CHECK(chmod((root / name).c_str(), mode & 0777) == 0);
  };
  make("nvidia0", S_IFCHR | 0666, 0);
  make("nvidia1", S_IFCHR | 0660, 1);
  make("caps/cap1", S_IFCHR | 0400, 2);
  make("caps/cap2", S_IFCHR | 0444, 3);
  make("caps/again", S_IFCHR | 0222, 3);
  make("caps/disk", S_IFBLK | 0666, 4);
  make("faults", S_IFCHR | 0600, 5);
  const Devices found = devicesIn({root / "nvidia0", root / "nvidia1", root / "caps", root / "x"},
                                  {root / "faults", root / "y"});
  CHECK(found == Devices{{240, 0, true, true},
                         {240, 1, true, true},
                         {240, 2, false, false},
                         {240, 3, true, true},
                         {240, 5, true, true}});
  std::filesystem::remove_all(root);
}

}  // namespace
