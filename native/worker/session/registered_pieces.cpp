// Registered memory: pieces of the client's files at the client's addresses.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <ranges>

#include "native/worker/session/memory_file.h"
#include "native/worker/session/shared_memory.h"

namespace worker {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLowest = 1 << 16;
constexpr std::uint64_t kHighest = 0x7fff'ffff'f000;  ///< end of a process's addresses

bool isAllowed(const SharedMemory::Piece& piece, const wire::AddressRange& window) {
  const std::uint64_t address = piece.address;  // clang 14 captures no structured bindings
  const std::uint64_t bytes = piece.bytes;
  if (address % kPage != 0 || bytes % kPage != 0 || piece.offset % kPage != 0) return false;
  if (bytes == 0 || address < kLowest || address > kHighest || bytes > kHighest - address)
    return false;
  const auto overlaps = [&](const wire::AddressRange& range) {
    return address < range.end && range.begin < address + bytes;
  };
  return !overlaps(window) && std::ranges::none_of(wire::deviceRanges(), overlaps);
}

/// Rights of a mapping of the file: as it was opened. 0 for a file that must not be mapped: a
/// device, one that is too short, or one whose pages the piece does not hold as a whole.
int rightsOf(int file, const SharedMemory::Piece& piece) {
  if (piece.offset > ~std::uint64_t{0} - piece.bytes) return 0;
  const std::uint64_t end = piece.offset + piece.bytes;
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0) return 0;
  const std::uint64_t page = pageBytes(file);
  if (page == 0 || (piece.address | piece.bytes | piece.offset) % page != 0) return 0;
  if (end > (static_cast<std::uint64_t>(status.st_size) + kPage - 1) / kPage * kPage) return 0;
  switch (fcntl(file, F_GETFL) & O_ACCMODE) {
    case O_RDWR: return PROT_READ | PROT_WRITE;
    case O_RDONLY: return PROT_READ;
    default: return 0;
  }
}

}  // namespace

SharedMemory::~SharedMemory() {
  for (const auto& [begin, end] : taken_) munmap(reinterpret_cast<void*>(begin), end - begin);
}

/// Reserves the addresses for pieces, and for nothing else of this process ever again: a node of a
/// graph keeps an address after the end of the registration. False if others have them.
bool SharedMemory::takeAddresses(std::uint64_t begin, std::uint64_t end) {
  while (begin < end) {
    const auto next = taken_.upper_bound(begin);
    const auto before = next == taken_.begin() ? taken_.end() : std::prev(next);
    if (before != taken_.end() && before->second > begin) {
      begin = before->second;
      continue;
    }
    const std::uint64_t gap = next == taken_.end() ? end : std::min(end, next->first);
    if (!wire::reserve({begin, gap})) return false;
    if (before != taken_.end() && before->second == begin)
      before->second = gap;
    else
      taken_[begin] = gap;
    begin = gap;
  }
  return true;
}

/// The file may shrink later: what reads it here then gets SIGBUS, which ends this session only.
/// The driver holds the pages themselves.
bool SharedMemory::mapFile(const Piece& piece, int file) {
  const int rights = rightsOf(file, piece);
  if (rights == 0 || isMapped(piece.address, piece.address + piece.bytes)) return false;
  const auto map = [&](void* address, int flag) {
    return mmap(address, piece.bytes, rights, MAP_SHARED | flag, file,
                static_cast<off_t>(piece.offset));
  };
  void* const probe = map(nullptr, 0);
  if (probe == MAP_FAILED) return false;
  munmap(probe, piece.bytes);
  if (!takeAddresses(piece.address, piece.address + piece.bytes)) return false;
  // A failure may leave the addresses free. The probe leaves none but a client that races.
  if (map(reinterpret_cast<void*>(piece.address), MAP_FIXED) == MAP_FAILED) std::abort();
  pieces_[piece.address] = {piece.bytes, (rights & PROT_WRITE) != 0};
  return true;
}

bool SharedMemory::isMapped(std::uint64_t begin, std::uint64_t end) const {
  const auto next = pieces_.lower_bound(end);
  return next != pieces_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > begin;
}

bool SharedMemory::mapPiece(const Piece& piece) {
  const int file = take(piece.file);
  if (file < 0) return false;
  const std::lock_guard lock(mutex_);
  const bool mapped = isAllowed(piece, window) && mapFile(piece, file);
  ::close(file);
  return mapped;
}

bool SharedMemory::isCovered(std::uint64_t begin, std::uint64_t end) const {
  auto next = pieces_.upper_bound(begin);
  if (next == pieces_.begin()) return false;
  for (--next; next != pieces_.end() && next->first <= begin; ++next) {
    begin = std::max(begin, next->first + next->second.bytes);
    if (begin >= end) return true;
  }
  return false;
}

bool SharedMemory::isUsed(std::uint64_t begin, std::uint64_t end) const {
  const auto next = registrations_.lower_bound(end);
  if (next == registrations_.begin()) return false;
  const auto& [address, registration] = *std::prev(next);
  return address + registration.bytes > begin;
}

bool SharedMemory::addRegistration(std::uint64_t address, std::uint64_t bytes, bool readOnly) {
  if (bytes == 0 || address > kHighest || bytes > kHighest - address) return false;
  const std::lock_guard lock(mutex_);
  const std::uint64_t end = address + bytes;
  if (!isCovered(address, end) || isUsed(address, end)) return false;
  bool writable = !readOnly;
  for (const auto& [begin, piece] : pieces_) {
    if (begin < end && begin + piece.bytes > address) writable = writable && piece.writable;
  }
  registrations_[address] = {.bytes = bytes, .writable = writable, .claimed = true};
  return true;
}

std::uint64_t SharedMemory::dropRegistration(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  registrations_.erase(address);
  return unmapUnusedLocked();
}

std::uint64_t SharedMemory::unmapUnused() {
  const std::lock_guard lock(mutex_);
  return unmapUnusedLocked();
}

/// Pages that a registration only touches count as used: neighbours share their first and last
/// page.
std::uint64_t SharedMemory::unmapUnusedLocked() {
  std::uint64_t bytes = 0;
  std::erase_if(pieces_, [&](const auto& entry) {
    const auto& [begin, piece] = entry;
    if (isUsed(begin, begin + piece.bytes)) return false;
    if (!wire::unmapShared(begin, piece.bytes)) std::abort();
    bytes += piece.bytes;
    return true;
  });
  return bytes;
}

}  // namespace worker
