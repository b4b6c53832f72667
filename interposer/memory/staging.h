// Copies between device and pageable memory through a few chunks of pinned memory: while one is in
// flight, the next is filled.
#pragma once

#include <cstddef>

#include "cuda_abi.h"

namespace interposer {

/// As cuMemcpyHtoDAsync: returns when the source has been read; `synchronise` also waits for the
/// device.
CUresult stageHtoD(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream stream,
                   bool synchronise);
/// As cuMemcpyDtoH on a stream: returns when the destination has been written.
CUresult stageDtoH(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream);

}  // namespace interposer
