// Checks at the start of every exported call: the driver is initialised, this thread may call it,
// and a live context is current.
#pragma once

#include "cuda_abi.h"
#include "native/simulator/border.h"
#include "native/simulator/call_scope.h"
#include "native/simulator/context.h"
#include "native/simulator/fault.h"

namespace simulator {

/// State of the driver in this process. `forked`: a child of fork cannot use the driver, as with
/// the real one, because it has no stream threads.
enum class DriverState { uninitialised, ready, forked };
DriverState driverState();
/// Called once by cuInit after the devices exist. A child of fork becomes `forked` from then on.
void markDriverReady();

/// CUDA_SUCCESS if this thread may call the driver: cuInit was called in this process, and the
/// caller is not a host function.
CUresult callable();
/// The calling thread's current context, if it is alive.
CUresult currentContext(Context*& context);

/// During its lifetime, this thread executes a stream's host function, which may not call the
/// driver.
class HostFunctionScope {
 public:
  HostFunctionScope();
  ~HostFunctionScope();
};

/// Runs the body of a call that needs only cuInit.
template <class Body>
CUresult inDriver(Body&& body) noexcept {
  return guarded([&]() -> CUresult {
    const CUresult status = callable();
    if (status != CUDA_SUCCESS) return status;
    const CallScope call;
    return body();
  });
}

/// Runs the body of a query that works even after a fault: body(Context&).
template <class Body>
CUresult inContextDespiteFault(Body&& body) noexcept {
  return inDriver([&]() -> CUresult {
    Context* context = nullptr;
    const CUresult status = currentContext(context);
    return status == CUDA_SUCCESS ? body(*context) : status;
  });
}

/// Runs the body of a call that needs a current context: body(Context&).
template <class Body>
CUresult inContext(Body&& body) noexcept {
  return inContextDespiteFault([&](Context& context) -> CUresult {
    const CUresult status = fault();
    return status == CUDA_SUCCESS ? body(context) : status;
  });
}

/// Runs the body of a call on an object that names its context, so no context must be current. A
/// current one that is destroyed is an error.
template <class Body>
CUresult withoutContext(Body&& body) noexcept {
  return inDriver([&]() -> CUresult {
    Context* context = nullptr;
    const CUresult current = currentContext(context);
    if (current == CUDA_ERROR_CONTEXT_IS_DESTROYED) return current;
    const CUresult status = fault();
    return status == CUDA_SUCCESS ? body() : status;
  });
}

}  // namespace simulator
