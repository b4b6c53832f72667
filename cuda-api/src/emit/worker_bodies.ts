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
        `CUresult ${call.name}(Thread& thread, wire::Decoder& in, wire::Encoder& ` +
        `out${call.window ? ', Window window' : ''});`,
    );
  return `${BANNER}// Bodies of calls in the worker that are written by hand.
#pragma once

#include "cuda_abi.h"
#include "native/worker/session/thread.h"
#include "wire/decoder.h"
#include "wire/encoder.h"
#include "wire/frame.h"

namespace worker {

/// Executes one frame: decodes it, calls the driver or the body below, encodes the answers.
/// Defined in dispatch.cpp.
CUresult dispatch(Thread& thread, const wire::FrameHeader& header, wire::Decoder& in, \
wire::Encoder& out);

// Instead of the driver's function; handles are the driver's already.
${bodies.join('\n')}

// With a frame of their own: the body decodes it and answers Thread::refuseFrame() when it does not
// parse. One that may block in the driver (cuMemcpyDtoH_v2) calls Thread::passTicket() first. One
// that is told of a window calls Thread::awaitWindow() right before it gives the driver work.
${frames.join('\n')}

}  // namespace worker
`;
}

function declareBody(call: Call): string {
  const parameters = parameterList(call.parameters);
  return `CUresult ${call.name}(Thread& thread${parameters === '' ? '' : `, ${parameters}`});`;
}
