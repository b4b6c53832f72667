// Copies between device and pageable memory through a few chunks of pinned memory: while one is in
// flight, the next is filled.
#pragma once

#include <cstddef>
#include <memory>

#include "cuda_abi.h"

namespace interposer {

/// As cuMemcpyHtoDAsync: returns when the source has been read; `synchronise` also waits for the
/// device.
CUresult stageHtoD(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream stream,
                   bool synchronise);
/// As cuMemcpyDtoH on a stream: returns when the destination has been written.
CUresult stageDtoH(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream);
/// A two-dimensional copy with pageable memory at one end or both.
CUresult stage2D(const CUDA_MEMCPY2D& copy, CUstream stream, bool synchronise);

/// Forgets the chunks of a context that has ended. The returned object owns their memory, and calls
/// the worker when it is released: release it when no lock is held.
std::shared_ptr<void> closeStaging(CUcontext context);

}  // namespace interposer
