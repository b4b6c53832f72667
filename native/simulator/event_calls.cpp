// Calls about events.
#include <chrono>
#include <optional>

#include "native/simulator/driver_call.h"
#include "native/simulator/event.h"
#include "native/simulator/fault.h"
#include "native/simulator/handles.h"
#include "native/simulator/stream_capture.h"

using namespace simulator;

namespace {

constexpr unsigned kCreateFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

template <class Body>
CUresult withEvent(CUevent handle, Body&& body) {
  const auto event = Handles<Event>::all().find(handle);
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(event);
}

/// Runs body(std::shared_ptr<Event>), also on a thread without a current context.
template <class Body>
CUresult onEvent(CUevent handle, Body&& body) {
  return withoutContext([&] { return withEvent(handle, body); });
}

/// Runs body(std::shared_ptr<Event>, Stream&).
template <class Body>
CUresult onEventAndStream(CUevent hEvent, CUstream hStream, Body&& body) {
  return onStream(hStream, [&](Context&, Stream& stream) {
    return withEvent(hEvent, [&](const auto& event) { return body(event, stream); });
  });
}

/// Runs body(Context&, std::shared_ptr<Event>) unless a stream of the context captures.
template <class Body>
CUresult onContextEvent(CUcontext hCtx, CUevent hEvent, Body&& body) {
  return inContext([&](Context&) {
    return withEvent(hEvent, [&](const std::shared_ptr<Event>& event) -> CUresult {
      Context* context = nullptr;
      CUresult status = findContext(hCtx, context);
      if (status == CUDA_SUCCESS) status = waitInCapture(*context);
      return status == CUDA_SUCCESS ? body(*context, event) : status;
    });
  });
}

/// The operation of a record. That of a shared event runs even after a fault, because other
/// processes wait for it.
Operation positionOf(const Event& event) {
  Operation operation;
  if (event.shared == nullptr) return operation;
  operation.always = true;
  operation.run = [shared = event.shared, number = event.shared->record()] {
    shared->finish(number);
  };
  return operation;
}

/// The wait for the latest record; empty if the stream has nothing to wait for.
std::optional<Operation> waitFor(const Event& event) {
  Operation operation;
  if (event.shared != nullptr) {
    const std::uint64_t number = event.shared->latest();
    if (event.shared->done(number)) return std::nullopt;
    operation.run = [shared = event.shared, number] { shared->wait(number); };
    return operation;
  }
  auto recording = event.recording();
  if (recording == nullptr || recording->done()) return std::nullopt;
  operation.after.push_back(std::move(recording));
  return operation;
}

CUresult record(CUevent hEvent, CUstream hStream, unsigned flags) {
  if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  return onEventAndStream(hEvent, hStream, [&](const auto& event, Stream& stream) -> CUresult {
    if (&stream.context != &event->context) return CUDA_ERROR_INVALID_HANDLE;
    if (const auto status = captureRecord(event, stream, flags)) return *status;
    event->record(stream.submit(positionOf(*event)));
    return CUDA_SUCCESS;
  });
}

CUresult elapsed(float* milliseconds, CUevent hStart, CUevent hEnd) {
  return withoutContext([&]() -> CUresult {
    const auto start = Handles<Event>::all().find(hStart), end = Handles<Event>::all().find(hEnd);
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (start == nullptr || end == nullptr || !start->timed() || !end->timed())
      return CUDA_ERROR_INVALID_HANDLE;
    if (start->captured() != nullptr || end->captured() != nullptr)
      return CUDA_ERROR_CAPTURED_EVENT;
    if (&start->context != &end->context) return CUDA_ERROR_INVALID_HANDLE;
    const auto from = start->recording(), to = end->recording();
    if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!from->done() || !to->done()) return CUDA_ERROR_NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(to->time() - from->time()).count();
    return fault();
  });
}

}  // namespace

DRIVER_CALL cuEventCreate(CUevent* phEvent, unsigned int Flags) {
  return inContext([&](Context& context) -> CUresult {
    if (phEvent == nullptr || (Flags & ~kCreateFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((Flags & CU_EVENT_INTERPROCESS) != 0 && (Flags & CU_EVENT_DISABLE_TIMING) == 0)
      return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<SharedEvent> shared;
    if ((Flags & CU_EVENT_INTERPROCESS) != 0 && (shared = SharedEvent::create()) == nullptr)
      return CUDA_ERROR_OUT_OF_MEMORY;
    auto event = std::make_shared<Event>(context, Flags, std::move(shared));
    *phEvent = handleOf<CUevent>(event.get());
    Handles<Event>::all().add(std::move(event));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuEventDestroy_v2(CUevent hEvent) {
  return onEvent(hEvent, [&](const auto&) -> CUresult {
    return Handles<Event>::all().remove(hEvent) == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                                           : CUDA_SUCCESS;
  });
}

DRIVER_CALL cuEventRecord(CUevent hEvent, CUstream hStream) {
  return record(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}
DRIVER_CALL cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  return record(hEvent, hStream, flags);
}

DRIVER_CALL cuEventQuery(CUevent hEvent) {
  return onEvent(hEvent, [](const std::shared_ptr<Event>& event) -> CUresult {
    const CUresult status = waitInCapture(*event);
    if (status != CUDA_SUCCESS) return status;
    if (event->shared != nullptr)
      return event->shared->done(event->shared->latest()) ? fault() : CUDA_ERROR_NOT_READY;
    const auto recording = event->recording();
    if (recording != nullptr && !recording->done()) return CUDA_ERROR_NOT_READY;
    return fault();
  });
}

DRIVER_CALL cuEventSynchronize(CUevent hEvent) {
  return onEvent(hEvent, [](const std::shared_ptr<Event>& event) -> CUresult {
    const CUresult status = waitInCapture(*event);
    if (status != CUDA_SUCCESS) return status;
    if (event->shared != nullptr) event->shared->wait(event->shared->latest());
    if (const auto recording = event->recording()) recording->wait();
    return fault();
  });
}

DRIVER_CALL cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
  return onContextEvent(hCtx, hEvent, [](Context& context, const std::shared_ptr<Event>& event) {
    if (&context != &event->context) return CUDA_ERROR_INVALID_HANDLE;
    event->record(workOf(context));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
  return onContextEvent(hCtx, hEvent, [](Context& context, const std::shared_ptr<Event>& event) {
    const auto recording = event->recording();
    if (recording != nullptr && !recording->done()) awaitInAll(context, recording);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}
DRIVER_CALL cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}

DRIVER_CALL cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  if (Flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  return onEventAndStream(hEvent, hStream, [&](const auto& event, Stream& stream) -> CUresult {
    if (const auto status = captureWait(event, stream, Flags)) return *status;
    if (auto wait = waitFor(*event)) stream.submit(std::move(*wait));
    return CUDA_SUCCESS;
  });
}
