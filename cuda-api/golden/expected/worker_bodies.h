// Generated. Do not edit, change cuda-api/.
// Bodies of calls in the worker that are written by hand.
#pragma once

#include "cuda_abi.h"
#include "native/worker/session/thread.h"
#include "wire/decoder.h"
#include "wire/encoder.h"
#include "wire/frame.h"

namespace worker {

/// Executes one frame: decodes it, calls the driver or the body below, encodes the answers.
/// Defined in dispatch.cpp.
CUresult dispatch(Thread& thread, const wire::FrameHeader& header, wire::Decoder& in, wire::Encoder& out);

// Instead of the driver's function; handles are the driver's already.
CUresult cuToyClose(Thread& thread, CUstream stream);
CUresult cuToyLoad(Thread& thread, CUmodule* module, const char* name, const void* image);

// With a frame of their own: the body decodes it and answers Thread::refuseFrame() when it does not
// parse. One that may block in the driver (cuMemcpyDtoH_v2) calls Thread::passTicket() first. One
// that is told of a window calls Thread::awaitWindow() right before it gives the driver work.
CUresult cuToyCopy(Thread& thread, wire::Decoder& in, wire::Encoder& out, Window window);
CUresult toyStage(Thread& thread, wire::Decoder& in, wire::Encoder& out);

}  // namespace worker
