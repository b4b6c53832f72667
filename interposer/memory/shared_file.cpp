#include "interposer/memory/shared_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace interposer {

namespace {

/// The system's name for a mapped file can differ from what fstat says (overlay file systems), so
/// a mapping is compared with a mapping.
bool isFileOf(int file, const wire::MemoryMap& map) {
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, static_cast<off_t>(map.offset));
  if (page == MAP_FAILED) return false;
  const auto begin = reinterpret_cast<std::uint64_t>(page);
  const auto found = wire::memoryMaps(begin, begin + 4096);
  munmap(page, 4096);
  return !found.empty() && found.front().file == map.file;
}

bool isRegular(int file, std::uint64_t inode) {
  struct stat status {};
  return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode;
}

int openIfSame(const char* path, const wire::MemoryMap& map) {
  const bool writable = (map.protection & PROT_WRITE) != 0;
  const int file = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return -1;
  if (isRegular(file, map.inode) && isFileOf(file, map)) return file;
  return close(file), -1;
}

}  // namespace

int openFileOf(const wire::MemoryMap& map) {
  if (map.inode == 0) return -1;
  int found = -1;
  if (DIR* descriptors = opendir("/proc/self/fd")) {
    while (const dirent* entry = found < 0 ? readdir(descriptors) : nullptr) {
      const int number = std::atoi(entry->d_name);
      if (entry->d_name[0] == '.' || !isRegular(number, map.inode)) continue;
      found = openIfSame((std::string("/proc/self/fd/") + entry->d_name).c_str(), map);
    }
    closedir(descriptors);
  }
  return found >= 0 || map.path.empty() || map.path[0] != '/' ? found
                                                              : openIfSame(map.path.c_str(), map);
}

}  // namespace interposer
