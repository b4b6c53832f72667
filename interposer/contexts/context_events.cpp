// Events of all the work of a context.
#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

CUresult send(CallNumber callNumber, CUcontext context, CUevent event) {
  Call call;
  if (!call.begin(callNumber, 16, kOrdered)) return call.status();
  call.encoder().put(number(context));
  call.encoder().put(number(event));
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
  return send(CallNumber::cuCtxRecordEvent, hCtx, hEvent);
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
  return send(CallNumber::cuCtxWaitEvent, hCtx, hEvent);
}

}  // namespace interposer
