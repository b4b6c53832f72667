#include "native/worker/calls/primary_context.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

CUcontext primaryOf(const Thread& thread, CUdevice device) {
  return static_cast<CUcontext>(
      thread.session.handles.find(wire::HandleKind::context, wire::primaryContextHandle(device)));
}

namespace {

/// Clears the core dump flags: the driver would write dumps to the host's file system, as large as
/// the GPU's memory.
unsigned withoutDumps(unsigned flags) {
  return flags & ~static_cast<unsigned>(CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE);
}

/// A new context, or one that was made in advance.
void noteContext(const Thread& thread, CUcontext context) {
  thread.session.memory.contextMade(context);
  thread.session.held.contextMade(context);
}

/// The new context replaces the current one. The driver's stack has one context at most, so that a
/// thread without a context has none here either.
CUresult makeContext(const Driver& driver, CUcontext* context, unsigned flags, CUdevice device) {
  const CUresult status = driver.cuCtxCreate_v4 != nullptr
                              ? driver.cuCtxCreate_v4(context, nullptr, flags, device)
                              : driver.cuCtxCreate_v2(context, flags, device);
  if (status != CUDA_SUCCESS) return status;
  CUcontext popped = nullptr;
  driver.cuCtxPopCurrent_v2(&popped);
  return driver.cuCtxSetCurrent(*context);
}

}  // namespace

/// An unknown handle, such as that of a primary context that is not retained, sets no context.
/// Later calls then get the driver's error.
CUresult cuCtxSetCurrent(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUcontext context = nullptr;
  if (thread.find<CUcontext>(handle, &context) != CUDA_SUCCESS) context = nullptr;
  thread.contextChanged();
  return thread.driver.cuCtxSetCurrent(context);
}

CUresult cuCtxCreate_v4(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto flags = withoutDumps(in.get<unsigned>());
  const auto device = in.get<CUdevice>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  thread.contextChanged();
  thread.session.warmContext.drop(thread.driver, device);  // its memory is not charged
  CUcontext context = nullptr;
  const CUresult status = thread.session.contexts.make(
      device, &context, [&] { return makeContext(thread.driver, &context, flags, device); });
  if (status != CUDA_SUCCESS) return status;
  noteContext(thread, context);
  out.put(thread.add(wire::HandleKind::context, context));
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(Thread& thread, CUcontext ctx) {
  const CUresult status = thread.driver.cuCtxDestroy_v2(ctx);
  if (status == CUDA_SUCCESS) thread.session.contextEnded(ctx);
  return status;
}

CUresult cuCtxSetFlags(Thread& thread, unsigned flags) {
  return thread.driver.cuCtxSetFlags != nullptr ? thread.driver.cuCtxSetFlags(withoutDumps(flags))
                                                : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuCtxSetLimit(Thread& thread, CUlimit limit, size_t value) {
  if (limit == CU_LIMIT_STACK_SIZE && !thread.session.localMemory.reserve(value))
    return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = thread.session.reserves.setLimit(limit, value);
  if (status == CUDA_ERROR_NOT_SUPPORTED && ReserveAccount::isUnknown(limit))
    thread.session.reportUnknownLimit(limit, value);
  return status;
}

/// The client counts the retains and sends only the first. A second retain in the driver would keep
/// the context alive after the client's release.
CUresult cuDevicePrimaryCtxRetain(Thread& thread, CUcontext* pctx, CUdevice dev) {
  *pctx = primaryOf(thread, dev);
  thread.session.greenContexts.keepPrimary(dev, false);
  if (*pctx != nullptr) return CUDA_SUCCESS;
  const CUresult status = thread.session.contexts.make(dev, pctx, [&] {
    *pctx = thread.session.warmContext.take(dev);
    return *pctx != nullptr ? CUDA_SUCCESS : thread.driver.cuDevicePrimaryCtxRetain(pctx, dev);
  });
  if (status != CUDA_SUCCESS) return status;
  noteContext(thread, *pctx);
  thread.session.handles.bind(wire::primaryContextHandle(dev), *pctx);
  return CUDA_SUCCESS;
}

/// The warm context exists before the program retains it. It has the default flags; for other flags
/// it is released and created again.
CUresult cuDevicePrimaryCtxSetFlags_v2(Thread& thread, CUdevice dev, unsigned int asked) {
  const unsigned flags = withoutDumps(asked);
  if (flags == 0 && thread.session.warmContext.holds(dev)) return CUDA_SUCCESS;
  thread.session.warmContext.drop(thread.driver, dev);
  return thread.driver.cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult endPrimaryContext(Thread& thread, CUdevice device) {
  const CUcontext context = primaryOf(thread, device);
  thread.ends(context);
  thread.session.handles.bind(wire::primaryContextHandle(device), nullptr);
  const Driver& driver = thread.driver;
  CUresult status = CUDA_SUCCESS;
  unsigned flags = 0;
  int active = 1;
  while (active != 0 && status == CUDA_SUCCESS) {
    status = driver.cuDevicePrimaryCtxRelease_v2(device);
    if (driver.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS) active = 0;
  }
  thread.session.contextEnded(context);
  return status;
}

/// The client sends only the last release.
CUresult cuDevicePrimaryCtxRelease_v2(Thread& thread, CUdevice dev) {
  if (primaryOf(thread, dev) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (thread.session.greenContexts.keepPrimary(dev, true)) return CUDA_SUCCESS;
  return endPrimaryContext(thread, dev);
}

CUresult cuDevicePrimaryCtxReset_v2(Thread& thread, CUdevice dev) {
  thread.session.warmContext.drop(thread.driver, dev);
  const CUcontext context = primaryOf(thread, dev);
  if (context != nullptr) thread.ends(context);
  const CUresult status = thread.driver.cuDevicePrimaryCtxReset_v2(dev);
  if (status != CUDA_SUCCESS) return status;
  if (context != nullptr) thread.session.contextEnded(context);
  thread.session.handles.bind(wire::primaryContextHandle(dev), nullptr);
  thread.session.greenContexts.keepPrimary(dev, false);
  return CUDA_SUCCESS;
}

}  // namespace worker
