#include "native/worker/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// What the limits reserve on the device counts: a program may not get memory that way either.
std::uint64_t reservedBy(const Driver& driver, CUlimit limit) {
  size_t bytes = 0;
  const bool counts = limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE;
  return counts && driver.cuCtxGetLimit(&bytes, limit) == CUDA_SUCCESS ? bytes : 0;
}

void endPrimary(Thread& thread, CUdevice device) {
  CUcontext context = nullptr;
  if (thread.find<CUcontext>(wire::primaryContextHandle(device), &context) == CUDA_SUCCESS) thread.ends(context);
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
  thread.contextChanged();
  CUcontext context = nullptr;
  const CUresult status = thread.driver.cuCtxCreate_v4 != nullptr ? thread.driver.cuCtxCreate_v4(&context, nullptr, flags, device)
                                                                  : thread.driver.cuCtxCreate_v2(&context, flags, device);
  if (status != CUDA_SUCCESS) return status;
  out.put(thread.add(wire::HandleKind::context, context));
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(Thread& thread, CUlimit limit, size_t value) {
  const std::uint64_t before = reservedBy(thread.driver, limit);
  const std::uint64_t more = before > 0 && value > before ? value - before : 0;
  if (more > 0 && !thread.session.quota.charge(more)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = thread.driver.cuCtxSetLimit(limit, value);
  if (more > 0 && status != CUDA_SUCCESS) thread.session.quota.refund(more);
  return status;
}

CUresult cuDevicePrimaryCtxRetain(Thread& thread, CUcontext* pctx, CUdevice dev) {
  const CUresult status = thread.driver.cuDevicePrimaryCtxRetain(pctx, dev);
  if (status == CUDA_SUCCESS) thread.session.handles.bind(wire::primaryContextHandle(dev), *pctx);
  return status;
}

/// The client counts who retains it and asks here for the last release only.
CUresult cuDevicePrimaryCtxRelease_v2(Thread& thread, CUdevice dev) {
  endPrimary(thread, dev);
  thread.session.handles.bind(wire::primaryContextHandle(dev), nullptr);
  const CUresult status = thread.driver.cuDevicePrimaryCtxRelease_v2(dev);
  thread.session.quota.forgetAll();
  return status;
}

CUresult cuDevicePrimaryCtxReset_v2(Thread& thread, CUdevice dev) {
  endPrimary(thread, dev);
  const CUresult status = thread.driver.cuDevicePrimaryCtxReset_v2(dev);
  if (status != CUDA_SUCCESS) return status;
  thread.session.handles.bind(wire::primaryContextHandle(dev), nullptr);
  thread.session.quota.forgetAll();
  return CUDA_SUCCESS;
}

}  // namespace worker
