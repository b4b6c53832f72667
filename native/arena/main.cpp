// nvidia-virtual-arena: populates the memory file of descriptor 3, and exits. README.md says why
// that is a process.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "native/arena/populate.h"

namespace {

constexpr int kFile = 3;

int fail(const std::string& reason) {
  std::fprintf(stderr, "%s\n", reason.c_str());
  return 1;
}

/// Lets the kernel end this process before any other if memory runs out. gpu-proxy then gives up
/// the arena.
bool volunteer() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  const bool written = file >= 0 && write(file, "1000", 4) == 4;
  const int error = errno;
  close(file);
  errno = error;
  return written;
}

}  // namespace

int main() {
  const pid_t proxy = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != proxy) return 1;
  if (!volunteer()) return fail(std::string("oom_score_adj: ") + std::strerror(errno));
  struct stat file {};
  if (fstat(kFile, &file) != 0) return fail(std::string("no file: ") + std::strerror(errno));
  const std::string problem = arena::populate(kFile, static_cast<std::size_t>(file.st_size));
  return problem.empty() ? 0 : fail(problem);
}
