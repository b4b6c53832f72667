// Address ranges outside of the arena: reservations of programs, and memory of other processes.
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace simulator {

/// Readable and writable even without a mapping, so that a copy that a program submits too late
/// does not crash the process.
inline constexpr int kProtection = PROT_READ | PROT_WRITE;
inline constexpr int kReservation = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// False if part of the range is in use.
bool reserveAt(std::uint64_t address, std::uint64_t size);
/// Reserves an aligned range anywhere. Returns 0 if there is none.
std::uint64_t reserveAnywhere(std::uint64_t size, std::uint64_t alignment);
/// Gives back a whole range of either function, mapped or not.
void giveBackReserved(std::uint64_t begin, std::uint64_t size);

}  // namespace simulator
