// Host memory that client and worker share at one address: pinned, managed and registered memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cuda_abi.h"

namespace interposer {

/// `moving`: managed memory that the GPU may have in its own memory.
enum class HostKind { pinned, managed, moving, registered };

struct HostRange {
  std::uint64_t begin = 0;
  std::size_t bytes = 0;  ///< as the program asked for
  unsigned flags = 0;
  HostKind kind = HostKind::pinned;
  CUcontext context = nullptr;  ///< that was current
};

bool isManaged(const HostRange& range);

/// True when the worker and the GPU reach [address, address + bytes) at this address.
bool isPinned(const void* address, std::size_t bytes);

/// The range around an address.
std::optional<HostRange> findHostRange(std::uint64_t address);
/// The lowest range that overlaps [begin, begin + bytes).
std::optional<HostRange> overlappingHostRange(std::uint64_t begin, std::size_t bytes);
void addHostRange(const HostRange& range);
/// The ranges of a kind that were made with the context.
std::vector<HostRange> hostRangesOf(CUcontext context, HostKind kind);
void removeHostRange(std::uint64_t begin);

/// Allocates memory that the worker maps and registers too. `flags`: CU_MEMHOSTALLOC_…
CUresult allocateShared(HostKind kind, std::size_t bytes, unsigned flags, std::uint64_t& address);
/// Frees it after the GPU's last use. CUDA_ERROR_INVALID_VALUE if none of this kind begins there.
CUresult freeShared(HostKind kind, std::uint64_t address);

}  // namespace interposer
