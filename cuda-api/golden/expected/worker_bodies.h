// Generated. Do not edit, change cuda-api/.
// Hand-written bodies of calls in the worker.
#pragma once

#include "cuda_abi.h"
#include "native/worker/session/thread.h"
#include "wire/decoder.h"
#include "wire/encoder.h"
#include "wire/frame.h"

namespace worker {

/// Executes a frame: decodes it, calls the driver or a body below, encodes the outputs.
/// Defined in dispatch.cpp.
CUresult dispatch(Thread& thread, const wire::FrameHeader& header, wire::Decoder& in, wire::Encoder& out);

// Called instead of the driver's function. Handles are already those of the driver.
CUresult cuToyClose(Thread& thread, CUstream stream);
CUresult cuToyLoad(Thread& thread, CUmodule* module, const char* name, const void* image);

// Bodies with a custom frame. A body:
// - decodes the frame, and returns Thread::refuseFrame() if it is malformed;
// - calls Thread::passTicket() before it blocks in the driver (cuMemcpyDtoH_v2);
// - if it has a `window`, calls Thread::awaitWindow() right before it submits work.
CUresult cuToyCopy(Thread& thread, wire::Decoder& in, wire::Encoder& out, Window window);
CUresult toyStage(Thread& thread, wire::Decoder& in, wire::Encoder& out);

}  // namespace worker
