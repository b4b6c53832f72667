// Describes a kernel to the client: handle, name, offsets and sizes of its parameters. Decoded by
// interposer/code/kernels.cpp.
#pragma once

#include "cuda_abi.h"
#include "wire/encoder.h"

namespace worker {

class Thread;

/// Creates the handle, which ends with `parent`, and writes the description. Returns
/// CUDA_ERROR_NOT_SUPPORTED if the description does not fit into the frame.
CUresult describe(Thread& thread, CUkernel kernel, std::uint64_t parent, wire::Encoder& out);
CUresult describe(Thread& thread, CUfunction function, std::uint64_t parent, wire::Encoder& out);

}  // namespace worker
