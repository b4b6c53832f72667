#include "native/simulator/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

#include "native/simulator/device.h"
#include "native/simulator/round_up.h"
#include "wire/anonymous_file.h"

namespace simulator {
namespace {

/// An address range that the client of a remoted program keeps free for the simulator. A program
/// that loads this library itself may get another range.
constexpr std::uint64_t kPreferred = 0x2b0000000000;
constexpr std::uint64_t kSmall = std::uint64_t{1} << 20;
constexpr std::uint64_t kMost = std::uint64_t{1} << 46;

/// Reserves addresses, at kPreferred if they are free. Returns 0 on failure.
std::uint64_t reserve(std::uint64_t bytes) {
  void* memory = mmap(reinterpret_cast<void*>(kPreferred), bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? 0 : reinterpret_cast<std::uint64_t>(memory);
}

}  // namespace

void FreeRanges::add(std::uint64_t begin, std::uint64_t size) {
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && begin + size == next->first) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto& [before, length] = *std::prev(next);
    if (before + length == begin) {
      length += size;
      return;
    }
  }
  free_.emplace(begin, size);
}

std::uint64_t FreeRanges::take(std::uint64_t size) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [begin, length] = *range;
    if (length < size) continue;
    free_.erase(range);
    if (length > size) free_.emplace(begin + size, length - size);
    return begin;
  }
  return 0;
}

Arena& Arena::instance() {
  static Arena& arena = *new Arena;
  return arena;
}

/// Reserves twice the memory of all devices, because of fragments and pools that keep addresses, or
/// as much as the system allows.
Arena::Arena() {
  std::uint64_t bytes = 0;
  for (const auto& device : devices()) bytes += 2 * roundUp(device->totalBytes, kPageBytes);
  for (; bytes >= kPageBytes; bytes /= 2) {
    const std::uint64_t begin = reserve(bytes + kPageBytes);
    if (begin == 0) continue;
    pages_.add(roundUp(begin, kPageBytes), bytes / kPageBytes * kPageBytes);
    return;
  }
}

/// Puts the pages into a memory file. Without a free descriptor they stay ordinary memory, which
/// cannot be shared.
void Arena::useFile(std::uint64_t begin, std::uint64_t size) {
  const int file = wire::createAnonymousFile("simulated-gpu-memory", MFD_CLOEXEC);
  if (file < 0) return;
  if (ftruncate(file, static_cast<off_t>(size)) == 0 &&
      mmap(reinterpret_cast<void*>(begin), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           file, 0) != MAP_FAILED) {
    files_.emplace(begin, file);
  } else {
    close(file);
  }
}

std::uint64_t Arena::takePages(Device* device, std::uint64_t size, Sharing sharing) {
  if (device != nullptr && !device->charge(size)) return 0;
  const std::uint64_t begin = pages_.take(size);
  if (begin == 0 && device != nullptr) device->release(size);
  if (begin != 0 && sharing == Sharing::possible) useFile(begin, size);
  return begin;
}

/// Other processes keep the pages of a memory file that they have mapped.
void Arena::givePages(Device* device, std::uint64_t begin, std::uint64_t size) {
  if (const auto file = files_.extract(begin)) {
    mmap(reinterpret_cast<void*>(begin), size, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    close(file.mapped());
  } else {
    madvise(reinterpret_cast<void*>(begin), size, MADV_DONTNEED);
  }
  pages_.add(begin, size);
  if (device != nullptr) device->release(size);
}

std::uint64_t Arena::allocateSmall(Device* device, std::uint64_t size, Sharing sharing) {
  for (auto& [begin, page] : shared_) {
    if (page.device != device || page.sharing != sharing) continue;
    if (const std::uint64_t address = page.free.take(size)) {
      page.used += size;
      pieces_.emplace(address, Piece{device, size, begin});
      return address;
    }
  }
  const std::uint64_t begin = takePages(device, kPageBytes, sharing);
  if (begin == 0) return 0;
  SharedPage& page = shared_[begin];
  page.device = device;
  page.sharing = sharing;
  page.used = size;
  page.free.add(begin + size, kPageBytes - size);
  pieces_.emplace(begin, Piece{device, size, begin});
  return begin;
}

std::uint64_t Arena::allocate(Device* device, std::size_t bytes, Sharing sharing) {
  if (bytes == 0 || bytes > kMost) return 0;
  const std::lock_guard lock(mutex_);
  if (bytes <= kSmall) return allocateSmall(device, roundUp(bytes, kAlignment), sharing);
  const std::uint64_t size = roundUp(bytes, kPageBytes);
  const std::uint64_t begin = takePages(device, size, sharing);
  if (begin != 0) pieces_.emplace(begin, Piece{device, size, 0});
  return begin;
}

std::optional<Arena::Place> Arena::placeOf(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto piece = pieces_.find(address);
  if (piece == pieces_.end()) return std::nullopt;
  const std::uint64_t begin = piece->second.page == 0 ? address : piece->second.page;
  const auto file = files_.find(begin);
  const int copy = file == files_.end() ? -1 : fcntl(file->second, F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? std::nullopt : std::optional(Place{copy, address - begin});
}

void Arena::release(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto node = pieces_.extract(address);
  if (!node) return;
  const auto [device, size, begin] = node.mapped();
  if (begin == 0) return givePages(device, address, size);
  SharedPage& page = shared_.at(begin);
  page.free.add(address, size);
  page.used -= size;
  if (page.used > 0) return;
  shared_.erase(begin);
  givePages(device, begin, kPageBytes);
}

}  // namespace simulator
