// The C border: defines exported functions and stops exceptions.
#pragma once

#include <new>

#include "cuda_abi.h"

/// Start of the definition of an exported driver function.
#define DRIVER_CALL extern "C" __attribute__((visibility("default"))) CUresult

namespace simulator {

/// Calls body() and turns exceptions into CUresults.
template <class Body>
CUresult guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

}  // namespace simulator
