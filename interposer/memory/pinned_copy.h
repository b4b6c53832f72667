// Copies with pinned host memory, which the worker has at the same address. The chunks of staging.h
// are pinned too.
#pragma once

#include <cstddef>

#include "cuda_abi.h"

namespace interposer {

/// Whether the process has allocated this device memory: a copy there needs no answer.
bool isAllocated(CUdeviceptr address, std::size_t bytes);
/// Device memory: allocated by this process, or in an address range that only drivers use. Asks the
/// driver if the program has memory of its own in such a range.
bool isDevice(CUdeviceptr address);

CUresult copyPinnedHtoD(CUdeviceptr destination, const void* source, std::size_t bytes,
                        CUstream stream, bool synchronise);
CUresult copyPinnedDtoH(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream,
                        bool synchronise);

}  // namespace interposer
