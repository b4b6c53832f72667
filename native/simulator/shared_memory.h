// Device memory that several processes share: exported by its owner, mapped by the others.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda_abi.h"
#include "native/simulator/exchange.h"

namespace simulator {

struct Allocation;
struct Context;
class Device;
struct Pool;

/// The device with this index among all simulated GPUs; null if this process does not see it.
Device* deviceWithIndex(int index);

/// Name of exported memory for other processes; the content of a CUipcMemHandle, and of
/// CUmemPoolPtrExportData.
struct ExportedMemory {
  static constexpr std::uint32_t kMagic = 0x4d504953;
  static constexpr std::uint32_t kPoolMagic = 0x50504953;

  std::uint32_t magic;
  std::int32_t device;  ///< index among all simulated GPUs
  std::uint64_t offset;
  std::uint64_t size;
  OfferedFile file;
};
static_assert(sizeof(ExportedMemory) == sizeof(CUipcMemHandle) &&
              sizeof(ExportedMemory) == sizeof(CUmemPoolPtrExportData));

/// Exports an allocation; the same one is always named alike. CUDA_ERROR_OUT_OF_MEMORY if the
/// process has no descriptors left.
CUresult exportMemory(const Allocation& allocation, ExportedMemory& name);
/// Whether other processes may have memory of this one, or this one has memory of others.
bool sharesMemory();
/// Ends the export of freed memory. Does nothing if it is not exported.
void endExport(std::uint64_t address);

/// Maps exported memory of another process, for a context or an imported pool. Memory that is
/// already mapped for it gets one more reference.
CUresult importMemory(Context* context, std::shared_ptr<Pool> pool, const ExportedMemory& name,
                      std::uint64_t& address);
/// Drops a reference. True if it was the last one: the caller then removes the allocation.
bool dropImport(std::uint64_t address);
/// Unmaps memory whose allocation was removed.
void unmapImported(std::uint64_t address);

}  // namespace simulator
