#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!isDefault(hStream)) return remote::cuStreamGetCtx(hStream, pctx);
  *pctx = Thread::current().context();  // a default stream is the current context's
  return *pctx != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  CUgreenCtx green = nullptr;
  // A driver without green contexts has no streams of them.
  if (interposer::cuStreamGetGreenCtx(hStream, &green) != CUDA_SUCCESS) green = nullptr;
  if (pGreenCtx != nullptr) *pGreenCtx = green;
  if (green == nullptr) return interposer::cuStreamGetCtx(hStream, pCtx);
  CUdevice device = 0;
  const CUresult status = remote::cuStreamGetDevice(hStream, &device);
  if (status == CUDA_SUCCESS && pCtx != nullptr) *pCtx = primaryContext(device);
  return status;
}

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out) {
  if (value_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuStreamGetAttribute, 16, kOrdered)) return call.status();
  call.encoder().put(number(hStream));
  call.encoder().put(attr);
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) *value_out = reply.get<CUstreamAttrValue>();
  return status;
}

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                              const CUstreamAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuStreamSetAttribute, 16 + sizeof *value, kOrdered))
    return call.status();
  call.encoder().put(number(hStream));
  call.encoder().put(attr);
  call.encoder().put(*value);
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace interposer
