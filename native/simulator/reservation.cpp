#include "native/simulator/reservation.h"

namespace simulator {

bool reserveAt(std::uint64_t address, std::uint64_t size) {
  void* got = mmap(reinterpret_cast<void*>(address), size, kProtection,
                   kReservation | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return false;
  if (reinterpret_cast<std::uint64_t>(got) == address) return true;
  munmap(got, size);
  return false;
}

/// Unmaps the surplus on both sides.
std::uint64_t reserveAnywhere(std::uint64_t size, std::uint64_t alignment) {
  constexpr std::uint64_t kPreferred = 0x2b8000000000;
  void* got =
      mmap(reinterpret_cast<void*>(kPreferred), size + alignment, kProtection, kReservation, -1, 0);
  if (got == MAP_FAILED) return 0;
  const auto begin = reinterpret_cast<std::uint64_t>(got);
  const std::uint64_t aligned = (begin + alignment - 1) / alignment * alignment;
  if (aligned > begin) munmap(got, aligned - begin);
  munmap(reinterpret_cast<void*>(aligned + size), begin + alignment - aligned);
  return aligned;
}

}  // namespace simulator
