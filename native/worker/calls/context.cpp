#include "native/worker/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

CUcontext primaryOf(const Thread& thread, CUdevice device) {
  return static_cast<CUcontext>(thread.session.handles.find(wire::HandleKind::context, wire::primaryContextHandle(device)));
}

CUresult makeContext(const Driver& driver, CUcontext* context, unsigned flags, CUdevice device) {
  return driver.cuCtxCreate_v4 != nullptr ? driver.cuCtxCreate_v4(context, nullptr, flags, device)
                                          : driver.cuCtxCreate_v2(context, flags, device);
}

}  // namespace

/// A handle that stands for no context (a primary one that nobody retains) makes none current: the driver then answers for it.
CUresult cuCtxSetCurrent(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUcontext context = nullptr;
  if (thread.find<CUcontext>(handle, &context) != CUDA_SUCCESS) context = nullptr;
  thread.contextChanged();
  return thread.driver.cuCtxSetCurrent(context);
}

CUresult cuCtxCreate_v4(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto flags = in.get<unsigned>();
  const auto device = in.get<CUdevice>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  thread.contextChanged();
  thread.session.warmContext.drop(thread.driver, device);  // nobody counts it
  CUcontext context = nullptr;
  const CUresult status =
      thread.session.contexts.make(device, &context, [&] { return makeContext(thread.driver, &context, flags, device); });
  if (status != CUDA_SUCCESS) return status;
  out.put(thread.add(wire::HandleKind::context, context));
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(Thread& thread, CUcontext ctx) {
  const CUresult status = thread.driver.cuCtxDestroy_v2(ctx);
  if (status == CUDA_SUCCESS) thread.session.contextEnded(ctx);
  return status;
}

CUresult cuCtxSetLimit(Thread& thread, CUlimit limit, size_t value) {
  if (limit == CU_LIMIT_STACK_SIZE && !thread.session.localMemory.reserve(value)) return CUDA_ERROR_OUT_OF_MEMORY;
  return thread.session.reserves.setLimit(limit, value);
}

/// The client counts who retains it and asks here for the first time only: more would keep it beyond its release.
CUresult cuDevicePrimaryCtxRetain(Thread& thread, CUcontext* pctx, CUdevice dev) {
  *pctx = primaryOf(thread, dev);
  if (*pctx != nullptr) return CUDA_SUCCESS;
  const CUresult status = thread.session.contexts.make(dev, pctx, [&] {
    *pctx = thread.session.warmContext.take(dev);
    return *pctx != nullptr ? CUDA_SUCCESS : thread.driver.cuDevicePrimaryCtxRetain(pctx, dev);
  });
  if (status == CUDA_SUCCESS) thread.session.handles.bind(wire::primaryContextHandle(dev), *pctx);
  return status;
}

/// A context that is there before the program retained it has the flags that it would have now.
CUresult cuDevicePrimaryCtxSetFlags_v2(Thread& thread, CUdevice dev, unsigned int flags) {
  if (flags == 0 && thread.session.warmContext.holds(dev)) return CUDA_SUCCESS;
  thread.session.warmContext.drop(thread.driver, dev);
  return thread.driver.cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

/// The client asks here for the last release only. The driver still counts those who retained it before a reset, and what it
/// holds returns only when it is gone.
CUresult cuDevicePrimaryCtxRelease_v2(Thread& thread, CUdevice dev) {
  const CUcontext context = primaryOf(thread, dev);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  thread.ends(context);
  thread.session.handles.bind(wire::primaryContextHandle(dev), nullptr);
  CUresult status = CUDA_SUCCESS;
  unsigned flags = 0;
  int active = 1;
  while (active != 0 && status == CUDA_SUCCESS) {
    status = thread.driver.cuDevicePrimaryCtxRelease_v2(dev);
    if (thread.driver.cuDevicePrimaryCtxGetState(dev, &flags, &active) != CUDA_SUCCESS) active = 0;
  }
  thread.session.contextEnded(context);
  return status;
}

CUresult cuDevicePrimaryCtxReset_v2(Thread& thread, CUdevice dev) {
  thread.session.warmContext.drop(thread.driver, dev);
  const CUcontext context = primaryOf(thread, dev);
  if (context != nullptr) thread.ends(context);
  const CUresult status = thread.driver.cuDevicePrimaryCtxReset_v2(dev);
  if (status != CUDA_SUCCESS) return status;
  thread.session.contextEnded(context);
  thread.session.handles.bind(wire::primaryContextHandle(dev), nullptr);
  return CUDA_SUCCESS;
}

}  // namespace worker
