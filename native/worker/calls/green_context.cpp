// Green contexts: parts of a GPU's multiprocessors. Their memory is that of the primary context.
#include <algorithm>
#include <vector>

#include "native/worker/calls/primary_context.h"
#include "native/worker/session/in_context.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

constexpr std::size_t kMostGroups = 256;

CUresult giveResource(Thread& thread, CUresult status, const CUdevResource& resource,
                      wire::Encoder& out) {
  if (status == CUDA_SUCCESS && !thread.session.greenContexts.give(resource))
    status = CUDA_ERROR_OUT_OF_MEMORY;
  if (status == CUDA_SUCCESS) out.put(resource);
  return status;
}

/// Decodes a handle and a type, and asks for the resource of the object.
template <class Owner>
CUresult askResource(Thread& thread, wire::Decoder& in, wire::Encoder& out,
                     CUresult (*ask)(Owner, CUdevResource*, CUdevResourceType)) {
  const auto handle = in.get<std::uint64_t>();
  const auto type = in.get<CUdevResourceType>();
  if (!in.finished()) return thread.refuseFrame();
  if (ask == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  Owner owner{};
  if (const CUresult status = thread.find<Owner>(handle, &owner); status != CUDA_SUCCESS)
    return status;
  CUdevResource resource{};
  const CUresult status = ask(owner, &resource, type);
  return giveResource(thread, status, resource, out);
}

/// Decodes a green context and an event, and passes the gate.
CUresult onEvent(Thread& thread, wire::Decoder& in, Window window,
                 CUresult (*call)(CUgreenCtx, CUevent)) {
  const auto greenHandle = in.get<std::uint64_t>();
  const auto eventHandle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  if (call == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUgreenCtx green = nullptr;
  CUevent event = nullptr;
  if (const CUresult status = thread.find<CUgreenCtx>(greenHandle, &green); status != CUDA_SUCCESS)
    return status;
  if (const CUresult status = thread.find<CUevent>(eventHandle, &event); status != CUDA_SUCCESS)
    return status;
  thread.awaitWindow(window, CU_STREAM_LEGACY, 0, {});
  thread.session.gate.recorded(event);
  return call(green, event);
}

/// Waits for the work of a green context: the driver answers nothing about its streams when it has
/// ended. Refused while one of them captures.
CUresult awaitWork(Thread& thread, CUcontext context) {
  const InContext current(thread.driver, context);
  if (current.status() != CUDA_SUCCESS) return CUDA_SUCCESS;
  const CUresult status = thread.driver.cuCtxSynchronize();
  return status == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ? status : CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceGetDevResource(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto device = in.get<CUdevice>();
  const auto type = in.get<CUdevResourceType>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuDeviceGetDevResource == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUdevResource resource{};
  const CUresult status = thread.driver.cuDeviceGetDevResource(device, &resource, type);
  return giveResource(thread, status, resource, out);
}

CUresult cuCtxGetDevResource(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return askResource(thread, in, out, thread.driver.cuCtxGetDevResource);
}

CUresult cuGreenCtxGetDevResource(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return askResource(thread, in, out, thread.driver.cuGreenCtxGetDevResource);
}

CUresult cuDevSmResourceSplitByCount(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto input = in.get<CUdevResource>();
  const auto wanted = in.get<std::uint32_t>();
  const auto counts = in.get<std::uint32_t>();  // only the number of groups
  const auto flags = in.get<std::uint32_t>();
  const auto minimum = in.get<std::uint32_t>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuDevSmResourceSplitByCount == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (!thread.session.greenContexts.gave(input)) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  std::vector<CUdevResource> groups(std::min<std::size_t>(wanted, kMostGroups));
  auto count = static_cast<unsigned>(groups.size());
  CUdevResource remaining{};
  const CUresult status = thread.driver.cuDevSmResourceSplitByCount(
      counts != 0 ? nullptr : groups.data(), &count, &input, &remaining, flags, minimum);
  if (status != CUDA_SUCCESS) return status;
  groups.resize(counts != 0 ? 0 : std::min<std::size_t>(count, groups.size()));
  out.put(std::uint32_t{count});
  for (const CUdevResource& group : groups) {
    if (const CUresult given = giveResource(thread, CUDA_SUCCESS, group, out);
        given != CUDA_SUCCESS)
      return given;
  }
  return giveResource(thread, CUDA_SUCCESS, remaining, out);
}

CUresult cuDevResourceGenerateDesc(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto given = in.getArray<CUdevResource>(kMostGroups);
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuDevResourceGenerateDesc == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  std::vector<CUdevResource> resources(given.begin(), given.end());
  for (const CUdevResource& resource : resources) {
    if (!thread.session.greenContexts.gave(resource)) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  }
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdevResourceDesc description = nullptr;
  if (const CUresult status = thread.driver.cuDevResourceGenerateDesc(
          &description, resources.data(), static_cast<unsigned>(resources.size()));
      status != CUDA_SUCCESS)
    return status;
  out.put(thread.add(wire::HandleKind::resourceDescription, description));
  return CUDA_SUCCESS;
}

/// Charged like a context, of which the driver makes one for its streams. It keeps the primary
/// context, which the program need not have retained.
CUresult cuGreenCtxCreate(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  const auto device = in.get<CUdevice>();
  const auto flags = in.get<unsigned>();
  if (!in.finished()) return thread.refuseFrame();
  const Driver& driver = thread.driver;
  if (driver.cuGreenCtxCreate == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUdevResourceDesc description = nullptr;
  if (const CUresult status = thread.find<CUdevResourceDesc>(handle, &description);
      status != CUDA_SUCCESS)
    return status;
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  const bool retained = primaryOf(thread, device) != nullptr;
  CUcontext primary = nullptr;
  if (const CUresult status = cuDevicePrimaryCtxRetain(thread, &primary, device);
      status != CUDA_SUCCESS)
    return status;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  const CUresult status = thread.session.contexts.make(device, &context, [&] {
    const CUresult made = driver.cuGreenCtxCreate(&green, description, device, flags);
    return made == CUDA_SUCCESS ? driver.cuCtxFromGreenCtx(&context, green) : made;
  });
  if (status != CUDA_SUCCESS) {
    if (green != nullptr) driver.cuGreenCtxDestroy(green);
    if (!retained && !thread.session.greenContexts.keepPrimary(device, true))
      endPrimaryContext(thread, device);
    return status;
  }
  thread.session.greenContexts.made(green, context, device, !retained);
  out.put(thread.add(wire::HandleKind::greenContext, green));
  out.put(thread.add(wire::HandleKind::context, context));
  return CUDA_SUCCESS;
}

/// Its streams stay, detached. So does memory that was allocated while it was current: both as long
/// as the primary context, which the last green context may have kept.
CUresult cuGreenCtxDestroy(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUgreenCtx green = nullptr;
  if (const CUresult status = thread.find<CUgreenCtx>(handle, &green); status != CUDA_SUCCESS)
    return status;
  auto& session = thread.session;
  const CUcontext context = session.greenContexts.contextOf(green);
  if (const CUresult status = awaitWork(thread, context); status != CUDA_SUCCESS) return status;
  thread.ends(context);
  thread.contextChanged();
  const CUresult status = thread.driver.cuGreenCtxDestroy(green);
  if (status != CUDA_SUCCESS) return status;
  session.handles.remove(handle);
  session.handles.remove(session.handles.handleOf(wire::HandleKind::context, context));
  session.contexts.detached(context);
  const auto unused = session.greenContexts.ended(green);
  return unused ? endPrimaryContext(thread, *unused) : CUDA_SUCCESS;
}

CUresult cuGreenCtxRecordEvent(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  return onEvent(thread, in, window, thread.driver.cuGreenCtxRecordEvent);
}

CUresult cuGreenCtxWaitEvent(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  return onEvent(thread, in, window, thread.driver.cuGreenCtxWaitEvent);
}

CUresult cuStreamGetGreenCtx(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuStreamGetGreenCtx == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUstream>(handle, &stream); status != CUDA_SUCCESS)
    return status;
  CUgreenCtx green = nullptr;
  const CUresult status = thread.driver.cuStreamGetGreenCtx(stream, &green);
  out.put(thread.session.handles.handleOf(wire::HandleKind::greenContext, green));
  return status;
}

/// The stream is the primary context's, whatever is current: it is charged to that and ends with
/// it.
CUresult cuGreenCtxStreamCreate(Thread& thread, CUstream* phStream, CUgreenCtx greenCtx,
                                unsigned int flags, int priority) {
  if (thread.driver.cuGreenCtxStreamCreate == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  Session& session = thread.session;
  const CUdevice device = session.greenContexts.deviceOf(greenCtx);
  const CUcontext primary = primaryOf(thread, device);
  if (primary == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;  // by a reset
  const CUresult status = session.streams.make(primary, phStream, [&] {
    return thread.driver.cuGreenCtxStreamCreate(phStream, greenCtx, flags, priority);
  });
  if (status == CUDA_SUCCESS)
    session.handles.add(wire::HandleKind::stream, *phStream, 0, wire::primaryContextHandle(device));
  return status;
}

}  // namespace worker
