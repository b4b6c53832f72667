// How memory of a handle is asked for and mapped, wherever the worker does it itself.
#pragma once

#include <cstdint>

#include "driver.h"

namespace worker {

inline CUmemAllocationProp memoryOf(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  return properties;
}

/// Maps all of a handle at reserved addresses, for its GPU to read and write. After an error
/// nothing is mapped.
inline CUresult mapHandle(const Driver& driver, CUdeviceptr begin, std::uint64_t bytes,
                          CUmemGenericAllocationHandle handle, const CUmemLocation& gpu) {
  CUresult status = driver.cuMemMap(begin, bytes, 0, handle, 0);
  if (status != CUDA_SUCCESS) return status;
  const CUmemAccessDesc access{.location = gpu, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  status = driver.cuMemSetAccess(begin, bytes, &access, 1);
  if (status != CUDA_SUCCESS) driver.cuMemUnmap(begin, bytes);
  return status;
}

}  // namespace worker
