#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "interposer/code/kernels.h"
#include "interposer/contexts/contexts.h"
#include "interposer/export_tables/context_storage.h"
#include "interposer/memory/managed_memory.h"
#include "interposer/memory/managed_variables.h"
#include "interposer/memory/registered_memory.h"
#include "interposer/memory/staging_chunks.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/handle_table.h"

namespace interposer {

namespace {

struct Contexts {
  std::shared_mutex mutex;
  std::map<CUcontext, ContextRecord> records;
  std::uint64_t lastId = 0;
  std::atomic<unsigned> changes{0};
};

Contexts& contexts() {
  static Contexts* const instance = new Contexts;
  return *instance;
}

bool validDevice(CUdevice device) {
  return device >= 0 && static_cast<std::size_t>(device) < Session::current()->devices().size();
}

ContextRecord& recordOf(CUcontext context, CUdevice device, bool primary) {
  auto [entry, created] = contexts().records.try_emplace(context);
  if (created)
    entry->second = {.device = device,
                     .primary = primary,
                     .bits = wire::contextBits(number(context)),
                     .id = ++contexts().lastId};
  return entry->second;
}

void push(CUcontext context) {
  Thread& thread = Thread::current();
  thread.contexts.push_back(context);
}

/// Removes the top of the thread's stack when it is `context`, as cuCtxDestroy does.
void popIf(CUcontext context) {
  auto& stack = Thread::current().contexts;
  if (!stack.empty() && stack.back() == context) stack.pop_back();
}

}  // namespace

bool isDestroyed(CUcontext context) {
  const std::shared_lock lock(contexts().mutex,
                              std::try_to_lock);  // the thread may be the one that holds it
  if (!lock.owns_lock()) return false;
  const auto found = contexts().records.find(context);
  return found != contexts().records.end() && !found->second.live;
}

CUresult unknownHandle() {
  return isDestroyed(Thread::current().context()) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                  : CUDA_ERROR_INVALID_HANDLE;
}

bool findContext(CUcontext context, ContextRecord& record) {
  if (context == nullptr || context == reinterpret_cast<CUcontext>(-1))
    context = Thread::current().context();
  const std::shared_lock lock(contexts().mutex);
  const auto found = contexts().records.find(context);
  if (found == contexts().records.end()) return false;
  record = found->second;
  return true;
}

CUresult changeCurrentContext(const std::function<CUresult(ContextRecord&)>& change) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const std::lock_guard lock(contexts().mutex);
  const auto found = contexts().records.find(Thread::current().context());
  if (found == contexts().records.end()) return CUDA_ERROR_INVALID_CONTEXT;
  return found->second.live ? change(found->second) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

unsigned contextChanges() { return contexts().changes.load(std::memory_order_relaxed); }
void contextChanged() { ++contexts().changes; }

namespace {

/// Called with every launch, so each thread caches what it needs of its context. False without one.
bool lookAtContext(Thread& thread) {
  const CUcontext context = thread.context();
  const unsigned change = contextChanges();
  if (context != nullptr && context == thread.deviceContext && change == thread.deviceChange)
      [[likely]]
    return true;
  ContextRecord record;
  if (!findContext(nullptr, record)) return false;
  thread.device = record.device;
  thread.contextBits = record.bits;
  thread.deviceContext = context;
  thread.deviceChange = change;
  return true;
}

/// 0 without a context.
std::uint8_t currentContextBits() {
  Thread& thread = Thread::current();
  return lookAtContext(thread) ? thread.contextBits : std::uint8_t{0};
}

}  // namespace

bool isDefault(CUstream stream) { return number(stream) <= number(CU_STREAM_PER_THREAD); }

bool isLegacy(CUstream stream) { return number(stream) <= number(CU_STREAM_LEGACY); }

CUresult readyInContext() {
  const CUresult status = Session::ready();
  if (status != CUDA_SUCCESS) return status;
  return Thread::current().context() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult currentDevice(CUdevice* device) {
  Thread& thread = Thread::current();
  if (!lookAtContext(thread)) return CUDA_ERROR_INVALID_CONTEXT;
  *device = thread.device;
  return CUDA_SUCCESS;
}

bool isOfCurrentContext(CUstream stream) {
  return isDefault(stream) || wire::contextBits(number(stream)) == currentContextBits();
}

bool areOfOneContext(CUevent event, CUstream stream) {
  return wire::contextBits(number(event)) ==
         (isDefault(stream) ? currentContextBits() : wire::contextBits(number(stream)));
}

void contextMade(CUcontext context, CUdevice device) {
  const std::lock_guard lock(contexts().mutex);
  ContextRecord& record = recordOf(context, device, false);
  record.live = true;
  record.bits = wire::contextBits(wire::primaryContextHandle(device));
  contextChanged();
}

void contextEnded(CUcontext context) {
  const std::lock_guard lock(contexts().mutex);
  contexts().records[context].live = false;
  contextChanged();
}

CUcontext primaryContext(CUdevice device) {
  const auto context = handle<CUcontext>(wire::primaryContextHandle(device));
  const std::lock_guard lock(contexts().mutex);
  recordOf(context, device, true);
  return context;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!validDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  const CUcontext context = primaryContext(dev);
  const std::lock_guard lock(contexts().mutex);
  ContextRecord& record = contexts().records[context];
  if (!record.live) {
    CUcontext ignored = nullptr;
    if (const CUresult status = remote::cuDevicePrimaryCtxRetain(&ignored, dev);
        status != CUDA_SUCCESS)
      return status;
    record.live = true;
    contextChanged();
  }
  ++record.retained;
  *pctx = context;
  return CUDA_SUCCESS;
}

namespace {

/// Objects of a context whose destruction needs calls to the worker.
struct Leftovers {
  std::shared_ptr<void> staging;
  CUcontext context;
  ~Leftovers() {
    endRegistrations(context);
    freeManagedOf(context);
  }
};

/// Forgets the content of a context that has ended. Release the returned object when no lock is
/// held.
std::shared_ptr<void> forgetContentOf(CUcontext context, const ContextRecord& record) {
  contextChanged();
  Session::current()->deviceRanges.clear();
  forgetKernelAttributes();
  forgetCode(number(context));
  forgetMirrors(context);
  clearContextStorage(record.id);
  return std::shared_ptr<void>(new Leftovers{closeStaging(context), context});
}

}  // namespace

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (!validDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  const CUcontext context = primaryContext(dev);
  std::shared_ptr<void> staging;
  const std::lock_guard lock(contexts().mutex);
  ContextRecord& record = contexts().records[context];
  if (record.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--record.retained > 0 || !record.live) return CUDA_SUCCESS;
  record.live = false;
  const CUresult status = remote::cuDevicePrimaryCtxRelease_v2(dev);
  staging = forgetContentOf(context, record);
  return status;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (!validDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  const CUcontext context = primaryContext(dev);
  std::shared_ptr<void> staging;
  const std::lock_guard lock(contexts().mutex);
  ContextRecord& record = contexts().records[context];
  const CUresult status = remote::cuDevicePrimaryCtxReset_v2(dev);
  if (status != CUDA_SUCCESS) return status;
  // Also while it is retained: the next cuDevicePrimaryCtxRetain creates it again (recorded).
  record.live = false;
  staging = forgetContentOf(context, record);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (!validDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  const CUresult status = remote::cuDevicePrimaryCtxSetFlags_v2(dev, flags);
  if (status != CUDA_SUCCESS) return status;
  const CUcontext context = primaryContext(dev);
  const std::lock_guard lock(contexts().mutex);
  contexts().records[context].flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (!validDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto context = handle<CUcontext>(wire::primaryContextHandle(dev));
  const std::shared_lock lock(contexts().mutex);
  const auto found = contexts().records.find(context);
  const bool known = found != contexts().records.end();
  *flags = known ? found->second.flags : 0;
  *active = known && found->second.live ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags,
                        CUdevice dev) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!validDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  if (ctxCreateParams != nullptr && ctxCreateParams->numExecAffinityParams != 0)
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (ctxCreateParams != nullptr && ctxCreateParams->cigParams != nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  Call call;
  // In order: one that another thread destroys may have been at the same address.
  if (!call.begin(CallNumber::cuCtxCreate_v4, 16, kOrdered)) return call.status();
  call.encoder().put(flags);
  call.encoder().put(dev);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto context = handle<CUcontext>(reply.get<std::uint64_t>());
  if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  {
    const std::lock_guard lock(contexts().mutex);
    ContextRecord& record = recordOf(context, dev, false);
    record.live = true;
    record.flags = flags;
  }
  push(context);
  contextChanged();
  *pctx = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams,
                        unsigned int flags, CUdevice dev) {
  if (paramsArray != nullptr || numParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return interposer::cuCtxCreate_v4(pctx, nullptr, flags, dev);
}

CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return interposer::cuCtxCreate_v4(pctx, nullptr, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  ContextRecord record;
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!findContext(ctx, record)) return CUDA_ERROR_INVALID_CONTEXT;
  if (record.primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (!record.live) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const CUresult status = remote::cuCtxDestroy_v2(ctx);
  if (status != CUDA_SUCCESS) return status;
  {
    const std::lock_guard lock(contexts().mutex);
    contexts().records[ctx].live = false;
  }
  popIf(ctx);
  forgetContentOf(ctx, record);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pctx = Thread::current().context();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  auto& stack = Thread::current().contexts;
  ContextRecord record;
  if (ctx != nullptr && !findContext(ctx, record)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!stack.empty()) stack.pop_back();
  if (ctx != nullptr) stack.push_back(ctx);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  ContextRecord record;
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!findContext(ctx, record)) return CUDA_ERROR_INVALID_CONTEXT;
  push(ctx);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  auto& stack = Thread::current().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (pctx != nullptr) *pctx = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return currentDevice(device);
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ContextRecord record;
  if (!findContext(ctx, record)) return CUDA_ERROR_INVALID_CONTEXT;
  *device = record.device;
  return CUDA_SUCCESS;
}

/// If all work of the context is in the legacy default stream, waits for that stream, which the
/// worker does faster.
CUresult cuCtxSynchronize() {
  Thread& thread = Thread::current();
  const Session* session = Session::current();
  if (session == nullptr || session->capturing()) return remote::cuCtxSynchronize();
  const std::uint64_t changes = session->order.changes();
  const Completed::Load load = thread.completed.load(thread.context(), changes);
  if (load != Completed::kIdle && load != Completed::kLegacy) return remote::cuCtxSynchronize();
  const CUresult status = interposer::cuStreamSynchronize(nullptr);
  // Another thread may have submitted work meanwhile.
  if (status == CUDA_SUCCESS && thread.changes == changes + wire::kTicket)
    thread.completed.noteLoad(thread.context(), thread.changes, Completed::kIdle);
  return status;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  if (ctx == nullptr || ctx == Thread::current().context()) return interposer::cuCtxSynchronize();
  if (const CUresult status = interposer::cuCtxPushCurrent_v2(ctx); status != CUDA_SUCCESS)
    return status;
  const CUresult status = remote::cuCtxSynchronize();
  interposer::cuCtxPopCurrent_v2(nullptr);
  return status;
}

}  // namespace interposer
