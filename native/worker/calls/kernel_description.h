// Names a kernel to the client: its handle and name. describeKernel adds the offsets and sizes of
// its parameters. Decoded by interposer/code/kernels.cpp.
#pragma once

#include "cuda_abi.h"
#include "wire/encoder.h"

namespace worker {

class Thread;

/// Creates the handle, which ends with `parent`, and writes both. Returns
/// CUDA_ERROR_NOT_SUPPORTED if the name does not fit into the frame.
CUresult name(Thread& thread, CUkernel kernel, std::uint64_t parent, wire::Encoder& out);
CUresult name(Thread& thread, CUfunction function, std::uint64_t parent, wire::Encoder& out);

}  // namespace worker
