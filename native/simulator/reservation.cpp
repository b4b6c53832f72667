#include "native/simulator/reservation.h"

#include <map>
#include <mutex>

#include "native/simulator/arena.h"
#include "native/simulator/round_up.h"

namespace simulator {
namespace {

/// Addresses where the kernel places nothing unasked. So host memory does not get addresses that a
/// program has given back, which would make them valid again.
struct Window {
  static constexpr std::uint64_t kBegin = 0x2b8000000000, kEnd = 0x400000000000;
  std::mutex mutex;
  FreeRanges free;
  std::map<std::uint64_t, std::uint64_t> taken;  ///< begin -> size

  Window() { free.add(kBegin, kEnd - kBegin); }
};

Window& window() {
  static auto& all = *new Window;
  return all;
}

/// Returns 0 if there is no room, or the program has taken the addresses otherwise.
std::uint64_t reserveInWindow(std::uint64_t size, std::uint64_t alignment) {
  Window& all = window();
  const std::lock_guard lock(all.mutex);
  const std::uint64_t begin = all.free.take(size + alignment);
  if (begin == 0) return 0;
  const std::uint64_t aligned = roundUp(begin, alignment), end = begin + size + alignment;
  if (aligned > begin) all.free.add(begin, aligned - begin);
  if (end > aligned + size) all.free.add(aligned + size, end - aligned - size);
  // A hint, because ThreadSanitizer replaces addresses where it wants no memory.
  void* got = mmap(reinterpret_cast<void*>(aligned), size, kProtection, kReservation, -1, 0);
  if (reinterpret_cast<std::uint64_t>(got) == aligned)
    return all.taken.emplace(aligned, size), aligned;
  if (got != MAP_FAILED) munmap(got, size);
  all.free.add(aligned, size);
  return 0;
}

/// Where the kernel likes. Unmaps the surplus on both sides.
std::uint64_t reserveElsewhere(std::uint64_t size, std::uint64_t alignment) {
  void* got = mmap(nullptr, size + alignment, kProtection, kReservation, -1, 0);
  if (got == MAP_FAILED) return 0;
  const auto begin = reinterpret_cast<std::uint64_t>(got);
  const std::uint64_t aligned = roundUp(begin, alignment);
  if (aligned > begin) munmap(got, aligned - begin);
  munmap(reinterpret_cast<void*>(aligned + size), begin + alignment - aligned);
  return aligned;
}

}  // namespace

bool reserveAt(std::uint64_t address, std::uint64_t size) {
  void* got = mmap(reinterpret_cast<void*>(address), size, kProtection,
                   kReservation | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return false;
  if (reinterpret_cast<std::uint64_t>(got) == address) return true;
  munmap(got, size);
  return false;
}

std::uint64_t reserveAnywhere(std::uint64_t size, std::uint64_t alignment) {
  if (size > Window::kEnd || alignment > Window::kEnd) return 0;
  const std::uint64_t begin = reserveInWindow(size, alignment);
  return begin != 0 ? begin : reserveElsewhere(size, alignment);
}

void giveBackReserved(std::uint64_t begin, std::uint64_t size) {
  Window& all = window();
  const std::lock_guard lock(all.mutex);
  munmap(reinterpret_cast<void*>(begin), size);
  if (all.taken.erase(begin) > 0) all.free.add(begin, size);
}

}  // namespace simulator
