#include "native/keeper/shared_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace keeper {

namespace {

constexpr std::size_t kPath = 64;

int openIn(const char* process, const char* name, int flags) {
  char path[kPath];
  std::snprintf(path, sizeof path, "/proc/%s/%s", process, name);
  return open(path, flags | O_RDONLY | O_CLOEXEC);
}

/// Memory files of other names are the driver's own; nobody else has them.
bool isShared(std::string_view file) {
  constexpr std::string_view kMemory = "/memfd:", kOurs = "/memfd:nvidia-virtual";
  if (file.starts_with(kMemory)) return file.starts_with(kOurs);
  for (const std::string_view own : {"/dev/", "/proc/", "/SYSV", "/anon_hugepage"})
    if (file.starts_with(own)) return false;
  return file.starts_with('/');
}

bool isSharedDescriptor(std::string_view file) {
  return file.starts_with("socket:") || file == "anon_inode:[pidfd]" || isShared(file);
}

/// Such as `2b0000000000-2b0000200000 rw-s 00000000 00:01 8800518    /memfd:channel (deleted)`.
struct Line {
  SharedMapping mapping{};
  bool shared = false;
  const char* path = "";
};

bool parse(const char* text, Line& line) {
  unsigned long begin = 0, end = 0, offset = 0, inode = 0;
  unsigned major = 0, minor = 0;
  char rights[5] = {};
  int path = 0;
  if (std::sscanf(text, "%lx-%lx %4s %lx %x:%x %lu %n", &begin, &end, rights, &offset, &major,
                  &minor, &inode, &path) != 7)
    return false;
  const int protection =
      (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : PROT_NONE);
  line = {{begin, end, offset, protection, {major, minor, inode}}, rights[3] == 's', text + path};
  return true;
}

/// Calls body(line) until it returns false; false then, or if a line cannot be read. The kernel
/// returns whole lines, one page at a time at most.
template <class Body>
bool eachLine(const char* process, Body body) {
  const int file = openIn(process, "maps", 0);
  if (file < 0) return false;
  char text[16384 + 1];
  ssize_t bytes = 0;
  bool goesOn = true;
  Line parsed;
  while (goesOn && (bytes = ::read(file, text, sizeof text - 1)) > 0) {
    text[bytes] = '\0';
    char* line = text;
    for (char* end = std::strchr(line, '\n'); goesOn && end != nullptr;
         line = end + 1, end = std::strchr(line, '\n')) {
      *end = '\0';
      goesOn = parse(line, parsed) && body(parsed);
    }
  }
  close(file);
  return goesOn && bytes == 0;
}

}  // namespace

FileId mappedFile(const void* begin) {
  FileId found{};
  eachLine("self", [&](const Line& line) {
    const bool isIt = line.mapping.begin == reinterpret_cast<std::uintptr_t>(begin);
    if (isIt) found = line.mapping.file;
    return !isIt;
  });
  return found;
}

bool SharedFiles::read(const char* process) {
  mappings_ = descriptors_ = 0;
  return readMappings(process) && readDescriptors(process);
}

bool SharedFiles::readMappings(const char* process) {
  return eachLine(process, [this](const Line& line) {
    if (!line.shared || !isShared(line.path)) return true;
    if (mappings_ == kMost) return false;
    mapping_[mappings_++] = line.mapping;
    return true;
  });
}

bool SharedFiles::readDescriptors(const char* process) {
  const int directory = openIn(process, "fd", O_DIRECTORY);
  if (directory < 0) return false;
  alignas(dirent64) char entries[4096];
  ssize_t bytes = 0;
  bool fits = true;
  while (fits && (bytes = syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0) {
    for (ssize_t at = 0; fits && at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      if (entry->d_name[0] != '.') fits = addDescriptor(process, std::atoi(entry->d_name));
      at += entry->d_reclen;
    }
  }
  close(directory);
  return fits && bytes == 0;
}

bool SharedFiles::addDescriptor(const char* process, int file) {
  if (file == kInside || file == kOutside) return true;
  char path[kPath], target[256];
  std::snprintf(path, sizeof path, "/proc/%s/fd/%d", process, file);
  const ssize_t bytes = readlink(path, target, sizeof target);
  if (bytes <= 0) return true;
  if (!isSharedDescriptor({target, static_cast<std::size_t>(bytes)})) return true;
  if (descriptors_ == kMost) return false;
  descriptor_[descriptors_++] = file;
  return true;
}

}  // namespace keeper
