#include "interposer/memory/moved_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "interposer/memory/write_freeze.h"

namespace interposer {

namespace {

/// Memory that is in use twice while pages move.
constexpr std::uint64_t kChunk = std::uint64_t{64} << 20;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

bool writeAll(int file, std::uint64_t from, std::uint64_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    const ssize_t written = pwrite(file, pointer(from), bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written, offset += written, bytes -= written;
  }
  return true;
}

/// Calls body(begin, bytes) for pieces of at most kChunk; ends with the first that returns false.
template <class Body>
bool inChunks(std::uint64_t begin, std::uint64_t end, Body body) {
  for (std::uint64_t at = begin; at < end; at += kChunk) {
    if (!body(at, std::min(kChunk, end - at))) return false;
  }
  return true;
}

/// The new mapping takes the place of the old one at once.
bool exchange(const wire::MemoryMap& map, std::uint64_t begin, std::uint64_t end, int file) {
  const std::uint64_t from = std::max(map.begin, begin);
  return inChunks(from, std::min(map.end, end), [&](std::uint64_t at, std::uint64_t bytes) {
    const std::uint64_t offset = at - begin;
    return writeAll(file, at, bytes, offset) &&
           mmap(pointer(at), bytes, map.protection, MAP_SHARED | MAP_FIXED, file,
                static_cast<off_t>(offset)) != MAP_FAILED;
  });
}

/// A private copy of [at, at + bytes), elsewhere; null without memory.
void* copyOf(std::uint64_t at, std::uint64_t bytes, int protection) {
  void* copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return nullptr;
  std::memcpy(copy, pointer(at), bytes);
  mprotect(copy, bytes, protection);
  return copy;
}

bool putInPlace(void* copy, std::uint64_t at, std::uint64_t bytes) {
  return mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(at)) != MAP_FAILED;
}

/// Frees the file's pages behind a mapping that is about to be replaced.
class Release {
 public:
  Release(std::uint64_t at, std::uint64_t bytes) : bytes_(bytes) {
    // A size of 0 maps shared pages a second time.
    second_ = mremap(pointer(at), 0, bytes, MREMAP_MAYMOVE);
  }
  ~Release() {
    if (second_ == MAP_FAILED) return;
    if (done_ && mprotect(second_, bytes_, PROT_READ | PROT_WRITE) == 0)
      madvise(second_, bytes_, MADV_REMOVE);
    munmap(second_, bytes_);
  }
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;
  void done() { done_ = true; }

 private:
  void* second_;
  const std::uint64_t bytes_;
  bool done_ = false;
};

/// Whether a page of the file is mapped twice: the program made one mapping longer.
bool overlap(const std::vector<wire::MemoryMap>& maps) {
  for (std::size_t i = 1; i < maps.size(); ++i) {
    const wire::MemoryMap& before = maps[i - 1];
    if (maps[i].offset < before.offset + (before.end - before.begin)) return true;
  }
  return false;
}

/// Addresses behind the end of the file, which are there because the program made a mapping longer,
/// become new memory.
bool makePrivate(const wire::MemoryMap& map, std::uint64_t fileBytes, bool release) {
  const std::uint64_t left = fileBytes - std::min(map.offset, fileBytes);
  const std::uint64_t end = std::min(map.end, map.begin + left);
  if (end < map.end)
    mmap(pointer(end), map.end - end, map.protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
         0);
  return inChunks(map.begin, end, [&](std::uint64_t at, std::uint64_t bytes) {
    if ((map.protection & PROT_READ) == 0) return false;  // the program forbade itself to read it
    void* copy = copyOf(at, bytes, map.protection);
    if (copy == nullptr) return false;
    if (!release) return putInPlace(copy, at, bytes);
    Release pages(at, bytes);
    if (!putInPlace(copy, at, bytes)) return munmap(copy, bytes), false;
    return pages.done(), true;
  });
}

}  // namespace

std::vector<wire::MemoryMap> mappingsOf(const MovedFile& file) {
  std::vector<wire::MemoryMap> found;
  for (wire::MemoryMap& map : wire::memoryMaps(0, ~std::uint64_t{0})) {
    if (map.shared && map.file == file.identity) found.push_back(std::move(map));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& one, const auto& other) { return one.offset < other.offset; });
  return found;
}

MovedFile moveToFile(std::uint64_t begin, std::uint64_t end, int file) {
  const std::vector<wire::MemoryMap> maps = wire::memoryMaps(begin, end);
  bool done = false;
  {
    const WriteFreeze freeze(begin, end, maps);
    done = freeze.ok() && std::all_of(maps.begin(), maps.end(), [&](const wire::MemoryMap& map) {
             return exchange(map, begin, end, file);
           });
  }
  MovedFile moved{{}, end - begin};
  for (const wire::MemoryMap& map : wire::memoryMaps(begin, end)) {
    if (map.shared) moved.identity = map.file;
  }
  if (done) return moved;
  if (moved) bringBack(moved);
  return {};
}

void bringBack(const MovedFile& file) {
  const std::vector<wire::MemoryMap> all = mappingsOf(file);
  const bool release = !overlap(all);
  for (const wire::MemoryMap& map : all) {
    const std::vector<wire::MemoryMap> maps = {map};
    const WriteFreeze freeze(map.begin, map.end, maps);
    if (freeze.ok()) makePrivate(map, file.bytes, release);
  }
}

void copyInChild(const std::vector<wire::MemoryMap>& maps, std::uint64_t fileBytes) {
  for (const wire::MemoryMap& map : maps) makePrivate(map, fileBytes, false);
}

}  // namespace interposer
