// Properties of a context: flags, version, number, and attachments.
#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

CUresult cuCtxGetFlags(unsigned int* flags) {
  if (flags == nullptr) {
    const CUresult status = Session::ready();
    return status == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : status;
  }
  return changeCurrentContext([&](const ContextRecord& record) {
    // CU_CTX_MAP_HOST is always on since CUDA 3.2; the driver reports it of primary contexts only.
    *flags = record.flags | (record.primary ? unsigned{CU_CTX_MAP_HOST} : 0u);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetFlags(unsigned int flags) {
  if (const CUresult status = remote::cuCtxSetFlags(flags); status != CUDA_SUCCESS) return status;
  return changeCurrentContext([&](ContextRecord& record) {
    record.flags = flags & ~static_cast<unsigned>(CU_CTX_COREDUMP_ENABLE);  // as measured
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam* pExecAffinity, CUexecAffinityType type) {
  CUdevice device = 0;
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (pExecAffinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = currentDevice(&device); status != CUDA_SUCCESS) return status;
  if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  pExecAffinity->type = type;
  pExecAffinity->param.smCount.val = static_cast<unsigned>(
      Session::current()->devices()[device].attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  Thread& thread = Thread::current();
  const CUcontext context = thread.context();
  const unsigned changes = contextChanges();
  const bool mayKnow = pvalue != nullptr && context != nullptr && KnownLimits::isFixed(limit) &&
                       Session::current()->mayRepeat();
  if (!mayKnow) return remote::cuCtxGetLimit(pvalue, limit);
  if (const auto known = thread.limits.find(context, changes, limit)) {
    *pvalue = *known;
    return CUDA_SUCCESS;
  }
  const CUresult status = remote::cuCtxGetLimit(pvalue, limit);
  if (status == CUDA_SUCCESS) thread.limits.note(context, changes, limit, *pvalue);
  return status;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  const CUresult status = remote::cuCtxSetLimit(limit, value);
  contextChanged();
  return status;
}

CUresult cuCtxAttach(CUcontext* pctx, unsigned int flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (pctx == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return changeCurrentContext([&](ContextRecord& record) {
    ++record.attached;
    *pctx = Thread::current().context();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxDetach(CUcontext ctx) {
  if (ctx != Thread::current().context()) return CUDA_ERROR_INVALID_CONTEXT;
  bool last = false;
  const CUresult status = changeCurrentContext([&](ContextRecord& record) {
    last = record.attached == 0;
    if (!last) --record.attached;
    return CUDA_SUCCESS;
  });
  return last ? interposer::cuCtxDestroy_v2(ctx) : status;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ContextRecord record;
  if (!findContext(ctx, record)) return CUDA_ERROR_INVALID_CONTEXT;
  *version = record.apiVersion;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (ctxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ContextRecord record;
  if (!findContext(ctx, record))
    return ctx == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *ctxId = record.id;
  return CUDA_SUCCESS;
}

}  // namespace interposer
