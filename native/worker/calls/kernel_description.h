// A kernel as the client needs to know it: handle, name, where its parameters lie (read by interposer/kernels.cpp).
#pragma once

#include "cuda_abi.h"
#include "wire/encoder.h"

namespace worker {

class Thread;

/// Mints the handle (it ends with `parent`) and writes the description.
CUresult describe(Thread& thread, CUkernel kernel, std::uint64_t parent, wire::Encoder& out);
CUresult describe(Thread& thread, CUfunction function, std::uint64_t parent, wire::Encoder& out);

}  // namespace worker
