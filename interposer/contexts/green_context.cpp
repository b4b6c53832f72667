// Green contexts: parts of a GPU's multiprocessors, each with a context for its streams.
#include <algorithm>
#include <map>
#include <mutex>

#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

struct Green {
  CUcontext context;
  CUdevice device;
};

struct Greens {
  std::mutex mutex;
  std::map<CUgreenCtx, Green> all;
};

Greens& greens() {
  static Greens* const instance = new Greens;
  return *instance;
}

bool find(CUgreenCtx handle, Green& green) {
  const std::lock_guard lock(greens().mutex);
  const auto found = greens().all.find(handle);
  if (found == greens().all.end()) return false;
  green = found->second;
  return true;
}

/// Asks for the resource of a device, a context or a green context.
template <class Owner>
CUresult ask(CallNumber callNumber, Owner owner, CUdevResource* resource, CUdevResourceType type) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(callNumber, 16, kOrdered)) return call.status();
  call.encoder().put(owner);
  call.encoder().put(type);
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) *resource = reply.get<CUdevResource>();
  return status;
}

CUresult onEvent(CallNumber callNumber, CUgreenCtx green, CUevent event) {
  Call call;
  if (!call.begin(callNumber, 16, kOrdered)) return call.status();
  call.encoder().put(number(green));
  call.encoder().put(number(event));
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  return ask(CallNumber::cuDeviceGetDevResource, device, resource, type);
}

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource* resource, CUdevResourceType type) {
  const CUcontext context = hCtx != nullptr ? hCtx : Thread::current().context();
  return ask(CallNumber::cuCtxGetDevResource, number(context), resource, type);
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource* resource,
                                  CUdevResourceType type) {
  return ask(CallNumber::cuGreenCtxGetDevResource, number(hCtx), resource, type);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* nbGroups,
                                     const CUdevResource* input, CUdevResource* remaining,
                                     unsigned int useFlags, unsigned int minCount) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (nbGroups == nullptr || input == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuDevSmResourceSplitByCount, 40 + sizeof *input, kOrdered))
    return call.status();
  call.encoder().put(*input);
  call.encoder().put<std::uint32_t>(*nbGroups);
  call.encoder().put<std::uint32_t>(result == nullptr);
  call.encoder().put<std::uint32_t>(useFlags);
  call.encoder().put<std::uint32_t>(minCount);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto groups = reply.get<std::uint32_t>();
  for (unsigned i = 0; result != nullptr && i < std::min(groups, *nbGroups); ++i)
    result[i] = reply.get<CUdevResource>();
  *nbGroups = groups;
  if (remaining != nullptr) *remaining = reply.get<CUdevResource>();
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources,
                                   unsigned int nbResources) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const std::size_t bytes = nbResources * sizeof *resources;
  if (phDesc == nullptr || resources == nullptr || nbResources == 0 ||
      bytes > wire::kMaxFrameBytes / 2)
    return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuDevResourceGenerateDesc, 16 + bytes, kOrdered))
    return call.status();
  call.encoder().putBytes(resources, bytes);
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) *phDesc = handle<CUdevResourceDesc>(reply.get<std::uint64_t>());
  return status;
}

/// Retains the primary context, as the real driver does.
CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev,
                          unsigned int flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (phCtx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUcontext primary = nullptr;
  if (const CUresult status = interposer::cuDevicePrimaryCtxRetain(&primary, dev);
      status != CUDA_SUCCESS)
    return status;
  CUresult status = CUDA_SUCCESS;
  {
    Call call;
    if (call.begin(CallNumber::cuGreenCtxCreate, 24, kOrdered)) {
      call.encoder().put(number(desc));
      call.encoder().put(dev);
      call.encoder().put(flags);
      wire::Decoder reply;
      status = call.wait(reply);
      const auto green = handle<CUgreenCtx>(reply.get<std::uint64_t>());
      const auto context = handle<CUcontext>(reply.get<std::uint64_t>());
      if (status == CUDA_SUCCESS) {
        contextMade(context, dev);
        const std::lock_guard lock(greens().mutex);
        greens().all[green] = {context, dev};
        *phCtx = green;
      }
    } else {
      status = call.status();
    }
  }
  if (status != CUDA_SUCCESS) interposer::cuDevicePrimaryCtxRelease_v2(dev);
  return status;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  Green green{};
  if (!find(hCtx, green)) return CUDA_ERROR_INVALID_CONTEXT;
  {
    Call call;
    if (!call.begin(CallNumber::cuGreenCtxDestroy, 8, kOrdered)) return call.status();
    call.encoder().put(number(hCtx));
    wire::Decoder reply;
    if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  }
  {
    const std::lock_guard lock(greens().mutex);
    greens().all.erase(hCtx);
  }
  contextEnded(green.context);
  return interposer::cuDevicePrimaryCtxRelease_v2(green.device);
}

CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  Green green{};
  if (pContext == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!find(hCtx, green)) return CUDA_ERROR_INVALID_CONTEXT;
  *pContext = green.context;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long* greenCtxId) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  Green green{};
  if (greenCtxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!find(greenCtx, green)) return CUDA_ERROR_INVALID_CONTEXT;
  return interposer::cuCtxGetId(green.context, greenCtxId);
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return onEvent(CallNumber::cuGreenCtxRecordEvent, hCtx, hEvent);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return onEvent(CallNumber::cuGreenCtxWaitEvent, hCtx, hEvent);
}

CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* phCtx) {
  if (phCtx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuStreamGetGreenCtx, 8, kOrdered)) return call.status();
  call.encoder().put(number(hStream));
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) *phCtx = handle<CUgreenCtx>(reply.get<std::uint64_t>());
  return status;
}

}  // namespace interposer
