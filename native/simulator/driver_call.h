// What every exported call begins with: is the driver initialised, may this thread call, which context is current, is it still alive.
#pragma once

#include <new>

#include "cuda_abi.h"
#include "native/simulator/context.h"
#include "native/simulator/fault.h"

/// Opens the definition of an exported function of the driver's ABI.
#define DRIVER_CALL extern "C" __attribute__((visibility("default"))) CUresult

namespace simulator {

/// CUDA_SUCCESS when this thread may call the driver at all: cuInit was called in this very process, and not from a host function.
CUresult callable();
/// The calling thread's current context, alive.
CUresult currentContext(Context*& context);

/// Runs on the thread that executes host functions of a stream: they may not call the driver.
class HostFunctionScope {
 public:
  HostFunctionScope();
  ~HostFunctionScope();
};

/// Exceptions stop here, at the C border.
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

/// A call that needs cuInit only.
template <class Body>
CUresult inDriver(Body&& body) noexcept {
  return guarded([&]() -> CUresult {
    const CUresult status = callable();
    return status == CUDA_SUCCESS ? body() : status;
  });
}

/// A question that the current context answers even after a fault: body(Context&).
template <class Body>
CUresult inContextDespiteFault(Body&& body) noexcept {
  return inDriver([&]() -> CUresult {
    Context* context = nullptr;
    const CUresult status = currentContext(context);
    return status == CUDA_SUCCESS ? body(*context) : status;
  });
}

/// A call that needs a current context: body(Context&).
template <class Body>
CUresult inContext(Body&& body) noexcept {
  return inContextDespiteFault([&](Context& context) -> CUresult {
    const CUresult status = fault();
    return status == CUDA_SUCCESS ? body(context) : status;
  });
}

}  // namespace simulator
