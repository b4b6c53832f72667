#include "wire/address_window.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>

namespace wire {

namespace {

constexpr std::uint64_t kTebibyte = std::uint64_t{1} << 40;

// Far from programs (0x5555…), libraries (0x7f…, or from 0x2aaa… in the legacy layout), Go's heap
// (0xc0…) and the fixed ranges of the address sanitizers. Four tebibytes cost no memory until they
// are used.
constexpr std::array kWindowCandidates = {
    AddressRange{0x6400'0000'0000, 0x6400'0000'0000 + 4 * kTebibyte},
    AddressRange{0x6000'0000'0000, 0x6000'0000'0000 + 4 * kTebibyte},
    AddressRange{0x5800'0000'0000, 0x5800'0000'0000 + 4 * kTebibyte},
    AddressRange{0x4800'0000'0000, 0x4800'0000'0000 + 4 * kTebibyte},
    AddressRange{0x3800'0000'0000, 0x3800'0000'0000 + 4 * kTebibyte},
};

// The driver's stream-ordered pools with its reservations around them, and the start of the legacy
// mmap layout.
constexpr std::array kDeviceRanges = {
    AddressRange{0x2'0000'0000, 0x50'0000'0000},
    AddressRange{0x2aaa'aaaa'a000, 0x2c00'0000'0000},
};

std::uint64_t roundedToPages(std::uint64_t bytes) {
  static const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) & ~(page - 1);
}

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// Reserves addresses that are inaccessible, free of memory limits and excluded from core dumps.
bool reserveAt(std::uint64_t address, std::uint64_t bytes, int flag) {
  void* mapped = mmap(pointer(address), bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flag, -1, 0);
  if (mapped == MAP_FAILED) return false;
  if (mapped != pointer(address))
    return munmap(mapped, bytes), false;  // the kernel lacks MAP_FIXED_NOREPLACE
  madvise(mapped, bytes, MADV_DONTDUMP);
  return true;
}

}  // namespace

std::span<const AddressRange> windowCandidates() { return kWindowCandidates; }
std::span<const AddressRange> deviceRanges() { return kDeviceRanges; }

bool reserve(const AddressRange& range) {
  return range.end > range.begin &&
         reserveAt(range.begin, range.end - range.begin, MAP_FIXED_NOREPLACE);
}

bool AddressWindow::open() {
  std::lock_guard lock(mutex_);
  for (const AddressRange& candidate : windowCandidates()) {
    if (!reserve(candidate)) continue;
    range_ = candidate;
    return true;
  }
  return false;
}

std::uint64_t AddressWindow::allocate(std::size_t bytes, std::uint64_t alignment) {
  std::lock_guard lock(mutex_);
  const std::uint64_t rounded = roundedToPages(bytes);
  if (rounded < bytes || rounded == 0) return 0;
  std::uint64_t at = range_.begin;
  for (const auto& [begin, end] : used_) {
    if (begin >= at && begin - at >= rounded) break;
    at = (end + alignment - 1) & ~(alignment - 1);
  }
  if (at > range_.end || range_.end - at < rounded) return 0;
  used_.emplace(at, at + rounded);
  return at;
}

void AddressWindow::release(std::uint64_t address) {
  std::lock_guard lock(mutex_);
  used_.erase(address);
}

bool mapShared(std::uint64_t address, std::size_t bytes, int file) {
  const std::size_t rounded = roundedToPages(bytes);
  return mmap(pointer(address), rounded, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) !=
         MAP_FAILED;
}

bool unmapShared(std::uint64_t address, std::size_t bytes) {
  return reserveAt(address, roundedToPages(bytes), MAP_FIXED);
}

}  // namespace wire
