// Memory of cuMemCreate, which programs map themselves.
#pragma once

#include <cstddef>
#include <memory>

#include "cuda_abi.h"

namespace simulator {

class Device;

/// A memory file, so that it can be mapped at several addresses, and by other processes.
struct Physical {
  /// Owns the file, and the charge of a device if `charged` is set.
  Physical(Device& device_, std::size_t size_, int file_, bool charged_)
      : device(device_), size(size_), file(file_), charged(charged_) {}
  ~Physical();
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;

  Device& device;
  const std::size_t size;
  const int file;
  const bool charged;  ///< false: another process has created the memory
  CUmemAllocationProp properties{};
};

/// Makes a handle of the memory.
CUmemGenericAllocationHandle addPhysical(std::shared_ptr<Physical> physical);
/// Null for an unknown handle.
std::shared_ptr<Physical> findPhysical(CUmemGenericAllocationHandle handle);

/// The memory of this process that lies in the same file; null if there is none.
std::shared_ptr<Physical> physicalIn(int file);

/// Writes what another process needs behind the memory, at the end of its file. False if the system
/// refuses.
bool describeFile(const Physical& physical);

}  // namespace simulator
