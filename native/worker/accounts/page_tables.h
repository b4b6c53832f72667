// Memory that the driver takes for the page tables of reserved addresses.
#pragma once

#include <cstdint>

namespace worker {

/// Upper bound of the GPU memory for the page tables of an address range. It is one table of 4 KiB
/// per 512 MiB, plus two at the ends (NVIDIA's public MMU format). The driver creates them at
/// mapping; they are charged at the reservation.
constexpr std::uint64_t pageTables(std::uint64_t bytes) {
  constexpr std::uint64_t kTable = 4096;
  constexpr std::uint64_t kReach = std::uint64_t{512} << 20;
  return (bytes / kReach + 3) * kTable;
}

}  // namespace worker
