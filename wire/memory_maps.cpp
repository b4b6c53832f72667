#include "wire/memory_maps.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

namespace wire {

namespace {

std::string readAll(const char* path) {
  std::string content;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return content;
  char part[16384];
  for (;;) {
    const ssize_t bytes = read(file, part, sizeof part);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    content.append(part, static_cast<std::size_t>(bytes));
  }
  close(file);
  return content;
}

/// "7f00-7f10 rw-s 00001000 00:01 42   /dev/shm/x"
bool parse(const std::string& line, MemoryMap& map) {
  char rights[5] = {};
  char device[24] = {};
  int pathAt = 0;
  unsigned long begin = 0, end = 0, offset = 0, inode = 0;
  if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %23s %lu %n", &begin, &end, rights, &offset,
                  device, &inode, &pathAt) < 6)
    return false;
  map.begin = begin, map.end = end, map.offset = offset, map.inode = inode;
  map.protection = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
                   (rights[2] == 'x' ? PROT_EXEC : 0);
  map.shared = rights[3] == 's';
  map.file = std::string(device) + ":" + std::to_string(inode);
  map.path = pathAt > 0 ? line.substr(static_cast<std::size_t>(pathAt)) : std::string();
  return true;
}

// From linux/fs.h of Linux 6.11.
struct MapQuery {
  std::uint64_t size, flags, address;
  std::uint64_t begin, end, rights, pageBytes, offset, inode;
  std::uint32_t major, minor, nameBytes, buildIdBytes;
  std::uint64_t name, buildId;
};
constexpr unsigned long kQueryMap = _IOWR('f', 17, MapQuery);

/// Asks for the mappings of the range only, so the cost does not grow with those of the process.
/// @returns nothing if the kernel is older than 6.11
std::optional<bool> askWhetherMapped(std::uint64_t begin, std::uint64_t end, int protection) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  bool known = true, mapped = true;
  while (known && mapped && begin < end) {
    MapQuery query{.size = sizeof query, .address = begin};
    const int status = ioctl(file, kQueryMap, &query);
    known = status == 0 || errno == ENOENT;
    mapped = status == 0 && (static_cast<int>(query.rights) & protection) == protection;
    begin = query.end;
  }
  close(file);
  return known ? std::optional(mapped) : std::nullopt;
}

}  // namespace

std::vector<MemoryMap> memoryMaps(std::uint64_t begin, std::uint64_t end) {
  std::vector<MemoryMap> maps;
  const std::string content = readAll("/proc/self/maps");
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t stop = content.find('\n', at);
    if (stop == std::string::npos) break;
    MemoryMap map;
    if (parse(content.substr(at, stop - at), map) && map.end > begin && map.begin < end)
      maps.push_back(std::move(map));
    at = stop + 1;
  }
  return maps;
}

bool isMapped(std::uint64_t begin, std::uint64_t end, int protection) {
  static_assert(PROT_READ == 1 && PROT_WRITE == 2 && PROT_EXEC == 4, "as in MapQuery::rights");
  if (const auto answer = askWhetherMapped(begin, end, protection)) return *answer;
  for (const MemoryMap& map : memoryMaps(begin, end)) {
    if (map.begin > begin || (map.protection & protection) != protection) return false;
    begin = map.end;
  }
  return begin >= end;
}

}  // namespace wire
