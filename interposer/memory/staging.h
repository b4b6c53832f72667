// Copies between device and pageable memory through a few chunks of pinned memory: while one is in
// flight, the next is filled.
#pragma once

#include <cstddef>

#include "cuda_abi.h"

namespace interposer {

/// Like cuMemcpyHtoDAsync, returns when it has read the source. `synchronise` also waits for the
/// device.
CUresult stageHtoD(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream stream,
                   bool synchronise);
/// Like cuMemcpyDtoH on a stream, returns when it has written the destination.
CUresult stageDtoH(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream);

}  // namespace interposer
