import { type Call, travels } from '../calls.js';
import type { Specification } from '../specification.js';
import { BANNER, parameterList } from './text.js';

/** worker_bodies.h: the hand-written bodies of the worker. */
export function emitWorkerBodies({ calls }: Specification): string {
  const travelling = calls.map(({ call }) => call).filter(travels);
  const bodies = travelling.filter((call) => call.workerCustom).map(declareBody);
  const frames = travelling
    .filter((call) => call.frameCustom)
    .map(
      (call) =>
        `CUresult ${call.name}(Thread& thread, wire::Decoder& in, wire::Encoder& out${call.window ? ', Window window' : ''});`,
    );
  return `${BANNER}// Hand-written bodies of calls in the worker.
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
${bodies.join('\n')}

// Bodies with a custom frame. A body:
// - decodes the frame, and returns Thread::refuseFrame() if it is malformed;
// - calls Thread::passTicket() before it blocks in the driver (cuMemcpyDtoH_v2);
// - if it has a \`window\`, calls Thread::awaitWindow() right before it submits work.
${frames.join('\n')}

}  // namespace worker
`;
}

function declareBody(call: Call): string {
  const parameters = parameterList(call.parameters);
  return `CUresult ${call.name}(Thread& thread${parameters === '' ? '' : `, ${parameters}`});`;
}
