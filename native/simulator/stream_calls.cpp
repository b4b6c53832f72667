// Calls about streams.
#include <algorithm>

#include "native/simulator/attributes.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/handles.h"
#include "native/simulator/stream.h"
#include "native/simulator/stream_capture.h"

using namespace simulator;

namespace {

CUresult create(CUstream* phStream, unsigned flags, int priority) {
  return inContext([&](Context& context) -> CUresult {
    if (phStream == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_shared<Stream>(context, flags,
                                           std::clamp(priority, kGreatestPriority, kLeastPriority));
    {
      const std::lock_guard lock(context.mutex);
      context.streams.push_back(stream);
    }
    *phStream = handleOf<CUstream>(stream.get());
    Handles<Stream>::all().add(std::move(stream));
    return CUDA_SUCCESS;
  });
}

/// Runs a query of a stream with one result.
template <class Answer, class Ask>
CUresult ask(CUstream handle, Answer* answer, Ask&& question) {
  return onStream(handle, [&](Context&, Stream& stream) -> CUresult {
    if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *answer = question(stream);
    return CUDA_SUCCESS;
  });
}

void runHostFunction(const std::function<void()>& function) {
  const HostFunctionScope scope;
  function();
}

}  // namespace

DRIVER_CALL cuStreamCreate(CUstream* phStream, unsigned int Flags) {
  return create(phStream, Flags, 0);
}

DRIVER_CALL cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  return create(phStream, flags, priority);
}

DRIVER_CALL cuStreamDestroy_v2(CUstream hStream) {
  return withoutContext([&]() -> CUresult {
    const auto stream = Handles<Stream>::all().remove(hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    leaveCapture(*stream);
    stream->retire();
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuStreamSynchronize(CUstream hStream) {
  return onStream(hStream, [](Context&, Stream& stream) -> CUresult {
    const CUresult status = waitInCapture(stream);
    if (status != CUDA_SUCCESS) return status;
    stream.synchronize();
    return fault();
  });
}

DRIVER_CALL cuStreamQuery(CUstream hStream) {
  return onStream(hStream, [](Context&, Stream& stream) -> CUresult {
    CUresult status = waitInCapture(stream);
    if (status != CUDA_SUCCESS) return status;
    const bool idle = stream.idle();
    status = fault();
    return status == CUDA_SUCCESS && !idle ? CUDA_ERROR_NOT_READY : status;
  });
}

DRIVER_CALL cuStreamGetPriority(CUstream hStream, int* priority) {
  return ask(hStream, priority, [](Stream& stream) { return stream.priority; });
}

DRIVER_CALL cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  return ask(hStream, flags, [](Stream& stream) { return stream.flags; });
}

DRIVER_CALL cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  return ask(hStream, streamId,
             [](Stream& stream) { return static_cast<unsigned long long>(stream.id); });
}

DRIVER_CALL cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  return ask(hStream, pctx, [](Stream& stream) { return handleOf<CUcontext>(&stream.context); });
}

DRIVER_CALL cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  const CUresult status = cuStreamGetCtx(hStream, pCtx);
  if (status == CUDA_SUCCESS && pGreenCtx != nullptr) *pGreenCtx = nullptr;
  return status;
}

DRIVER_CALL cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  return ask(hStream, device, [](Stream& stream) { return stream.context.device.ordinal; });
}

DRIVER_CALL cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                                unsigned int flags) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const CUresult status = refusedInCapture(stream);
    if (status != CUDA_SUCCESS) return status;
    Operation operation;
    operation.always = true;  // it receives the error
    operation.run = [=] { runHostFunction([=] { callback(hStream, fault(), userData); }); };
    stream.submit(std::move(operation));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto status = captured(stream, [&](Work& work) {
      work = HostWork{{fn, userData}};
      return CUDA_SUCCESS;
    });
    if (status) return *status;
    stream.submit([=] { runHostFunction([=] { fn(userData); }); });
    return CUDA_SUCCESS;
  });
}
