// Sending a code image to the worker: what cuLibraryLoadData and cuModuleLoadData share.
#pragma once

#include <string>

#include "cuda_abi.h"
#include "interposer/code/jit_options.h"
#include "interposer/session/call.h"

namespace interposer {

/// Sends the images behind `code` with call `number`; on success `handle` is the new library or
/// module.
CUresult load(CallNumber number, const void* code, JitOptions options, std::uint64_t& handle);

/// Reads a file whole, with a NUL behind it. CUDA_ERROR_FILE_NOT_FOUND when it cannot be read.
CUresult readFile(const char* path, std::string& content);

}  // namespace interposer
