// Calls about streams. stream_queue.cpp orders and executes operations.
#include "native/simulator/stream.h"

#include <algorithm>
#include <unordered_map>

#include "native/simulator/attributes.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/handles.h"

namespace simulator {
namespace {

/// The per-thread default streams of a thread, by the context's id since its last activation.
struct PerThreadStreams {
  ~PerThreadStreams() {
    for (const auto& [id, stream] : streams) {
      if (!stream->idle()) stream->retire();
    }
  }
  std::unordered_map<std::uint64_t, std::shared_ptr<Stream>> streams;
};

std::shared_ptr<Stream> perThreadStream(Context& context) {
  thread_local PerThreadStreams mine;
  auto& stream = mine.streams[context.id.load()];
  if (stream == nullptr) {
    stream = std::make_shared<Stream>(context, 0u, 0);
    const std::lock_guard lock(context.mutex);
    context.streams.push_back(stream);
  }
  return stream;
}

}  // namespace

CUresult findStream(Context& current, CUstream handle, std::shared_ptr<Stream>& stream) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    const std::lock_guard lock(current.mutex);
    stream = current.legacy;
  } else if (handle == CU_STREAM_PER_THREAD) {
    stream = perThreadStream(current);
  } else {
    stream = Handles<Stream>::all().find(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  }
  return stream == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

}  // namespace simulator

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
  return inContext([&](Context&) -> CUresult {
    const auto stream = Handles<Stream>::all().remove(hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    stream->retire();
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuStreamSynchronize(CUstream hStream) {
  return onStream(hStream, [](Context&, Stream& stream) -> CUresult {
    stream.synchronize();
    return fault();
  });
}

DRIVER_CALL cuStreamQuery(CUstream hStream) {
  return onStream(hStream, [](Context&, Stream& stream) -> CUresult {
    const bool idle = stream.idle();
    const CUresult status = fault();
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
    stream.submit([=] { runHostFunction([=] { fn(userData); }); });
    return CUDA_SUCCESS;
  });
}
