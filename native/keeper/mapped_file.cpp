#include "native/keeper/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace keeper {

namespace {

/// Pins the file without opening it: to open a device can have effects.
int pin(pid_t process, const SharedMapping& mapping) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/map_files/%lx-%lx", process,
                static_cast<unsigned long>(mapping.begin), static_cast<unsigned long>(mapping.end));
  return open(path, O_PATH | O_CLOEXEC);
}

bool isRegular(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

int openPinned(int pinned, int protection) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", pinned);
  return open(path, ((protection & PROT_WRITE) != 0 ? O_RDWR : O_RDONLY) | O_CLOEXEC);
}

/// Compares as the kernel lists mappings: on overlayfs and btrfs, fstat() has other numbers.
bool isFile(int file, const FileId& wanted) {
  void* const at = mmap(nullptr, 1, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED) return false;
  const bool same = mappedFile(at) == wanted;
  munmap(at, 1);
  return same;
}

int failed(int file, int error) {
  close(file);
  errno = error;
  return -1;
}

}  // namespace

int openMapped(pid_t process, const SharedMapping& mapping) {
  const int pinned = pin(process, mapping);
  if (pinned < 0) return -1;
  if (!isRegular(pinned)) return failed(pinned, EINVAL);
  const int file = openPinned(pinned, mapping.protection);
  if (file < 0) return failed(pinned, errno);
  close(pinned);
  return isFile(file, mapping.file) ? file : failed(file, ESTALE);
}

}  // namespace keeper
