#include "interposer/session/call.h"

#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "call_facts.h"
#include "interposer/contexts/contexts.h"
#include "interposer/session/call_hooks.h"
#include "interposer/session/callback.h"
#include "interposer/session/log.h"

namespace interposer {

namespace {

/// Sets the worker thread's current context lazily, with the first call that needs it. That takes a
/// ticket, so a thread that has no context and makes only unordered calls never waits for others.
bool followContext(Session& session, Thread& thread, Order order) {
  const CUcontext context = thread.context();
  if (context == nullptr && order == kUnordered) return true;
  const unsigned change = contextChanges();
  if (context == thread.workerContext && change == thread.contextChange) [[likely]]
    return true;
  wire::Encoder encoder = thread.channel->begin(8);
  encoder.put(number(context));
  if (encoder.failed()) return false;
  thread.channel->publish(encoder, static_cast<std::uint16_t>(CallNumber::cuCtxSetCurrent), 0,
                          session.order.take().ticket);
  thread.workerContext = context;
  thread.contextChange = change;
  return !session.lost();
}

/// After these calls other processes may use memory of this one.
constexpr bool exportsMemory(CallNumber number) {
  using enum CallNumber;
  return number == cuIpcGetMemHandle || number == cuMemExportToShareableHandle ||
         number == cuMemPoolExportToShareableHandle || number == cuMemPoolExportPointer;
}

/// Queries change nothing.
constexpr bool isQuery(CallNumber number) {
  return number == CallNumber::cuEventQuery || number == CallNumber::cuStreamQuery;
}

std::optional<SubmissionOrder::Place> placeOf(CallNumber number, Session& session,
                                              const Thread& thread, Order order) {
  if (order == kShared) return session.order.takeShared();
  if (isQuery(number)) return session.order.takeQuery();
  if (order == kOrdered) [[likely]]
    return session.order.take();
  const std::uint64_t changes = session.order.changes();
  if (thread.completed.load(thread.context(), changes) != Completed::kIdle) return std::nullopt;
  return session.order.takeBehind(changes);
}

/// Behind these calls, the context is as idle as before.
constexpr bool beginsNoWork(CallNumber number) {
  using enum CallNumber;
  return number == cuModuleLoadDataEx || number == cuModuleGetFunction ||
         number == cuModuleGetGlobal_v2;
}

/// After these calls the program may look at what the GPU wrote. A reply with content would not
/// survive the calls that fetch managed variables.
constexpr bool waitsForGpu(CallNumber number) {
  using enum CallNumber;
  switch (number) {
    case cuCtxSynchronize:
    case cuCtxSynchronize_v2:
    case cuStreamSynchronize:
    case cuStreamQuery:
    case cuEventSynchronize:
    case cuEventQuery:
    case cuMemcpyHtoDAsync_v2:
    case cuMemcpyDtoHAsync_v2:
    case cuMemcpy3DAsync_v2: return true;
    default: return false;
  }
}

/// The worker does not know destroyed contexts or their objects; the program gets the errors of the
/// native driver.
CUresult contextError(const Thread& thread, CUresult status) {
  return isDestroyed(thread.context()) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : status;
}

}  // namespace

bool Call::begin(CallNumber number, std::size_t payloadBytes, Order order) {
  Session* const session = Session::current();
  if (session == nullptr || insideCallback()) [[unlikely]]
    return status_ = Session::ready(), false;
  if (order != kUnordered) beforeCall();
  if (const auto hook = beforeWork.load(std::memory_order_acquire); hook != nullptr) [[unlikely]] {
    if (kCallFacts[static_cast<std::size_t>(number)].submits) status_ = hook();
    if (status_ != CUDA_SUCCESS) return false;
  }
  thread_ = &Thread::current();
  channel_ = thread_->openChannel(*session);
  if (channel_ == nullptr || session->lost()) [[unlikely]]
    return status_ = CUDA_ERROR_DEVICE_UNAVAILABLE, false;
  if (!followContext(*session, *thread_, order)) [[unlikely]]
    return status_ = CUDA_ERROR_DEVICE_UNAVAILABLE, false;
  number_ = number;
  encoder_ = channel_->begin(payloadBytes);
  if (encoder_.failed()) [[unlikely]]
    return status_ = session->lost() ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_INVALID_VALUE,
           false;
  if (order == kUnordered) return true;
  shares_ = order == kShared;
  const auto place = placeOf(number, *session, *thread_, order);
  if (!place) return status_ = CUDA_ERROR_NOT_READY, false;
  ticket_ = place->ticket;
  changes_ = place->changes;
  return true;
}

Call::~Call() {
  if (ticket_ == 0) [[likely]]
    return;
  number_ = CallNumber::passTicket;
  encoder_ = channel_->begin(0);
  publish(0);
}

CUresult Call::publish(std::uint16_t flags) {
  if (encoder_.failed()) [[unlikely]]
    return CUDA_ERROR_INVALID_VALUE;
  if (shares_) flags |= wire::kFrameShares;
  channel_->publish(encoder_, static_cast<std::uint16_t>(number_), flags,
                    std::exchange(ticket_, 0));
  return CUDA_SUCCESS;
}

CUresult Call::wait(wire::Decoder& reply) {
  if (const CUresult status = publish(wire::kFrameWantsReply); status != CUDA_SUCCESS)
    return status;
  wire::ReplyHeader header{};
  reply = channel_->awaitReply(header, number_ == CallNumber::cuStreamSynchronize);
  if (!reply.ok()) [[unlikely]]
    return CUDA_ERROR_DEVICE_UNAVAILABLE;
  // An access to managed memory may come from a thread that holds the lock of the text's stream.
  if (kCallFacts[static_cast<std::size_t>(number_)].ordered)
    thread_->session->awaitText(header.text);
  if (wire::isFault(header.status)) [[unlikely]]
    thread_->session->noteFault();
  const auto status = static_cast<CUresult>(header.status);
  if (status == CUDA_SUCCESS && waitsForGpu(number_) && reply.finished()) afterWait();
  if (status == CUDA_SUCCESS) noteReply();
  if (status == CUDA_ERROR_INVALID_CONTEXT || status == CUDA_ERROR_INVALID_HANDLE) [[unlikely]]
    return contextError(*thread_, status);
  return status;
}

void Call::noteReply() {
  thread_->changes = changes_;
  Completed& completed = thread_->completed;
  const CUcontext context = thread_->context();
  if (number_ == CallNumber::cuCtxSynchronize)
    completed.noteLoad(context, changes_, Completed::kIdle);
  else if (beginsNoWork(number_))
    completed.noteLoad(context, changes_, completed.load(context, changes_ - wire::kTicket));
  if (exportsMemory(number_)) thread_->session->noteExport();
}

CUresult Call::enqueue(bool plausible) {
  const Session& session = *thread_->session;
  if (!plausible || thread_->waiting > 0 || thread_->context() == nullptr ||
      session.synchronous() || session.faulted() || session.capturing()) [[unlikely]] {
    wire::Decoder reply;
    return wait(reply);
  }
  if (const CUresult status = publish(0); status != CUDA_SUCCESS) return status;
  thread_->changes = changes_;
  const auto earlier = channel_->takeDeferredError();
  if (wire::isFault(earlier)) [[unlikely]]
    thread_->session->noteFault();
  return static_cast<CUresult>(earlier);
}

CUresult constant(CUresult result) {
  const CUresult status = Session::ready();
  return status == CUDA_SUCCESS ? result : status;
}

CUresult unsupported(const char* call, const char* why) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  static std::mutex mutex;
  static auto* const named = new std::set<const char*>;
  const std::lock_guard lock(mutex);
  if (named->insert(call).second) {
    log("%s is not supported: %s; the program got CUDA_ERROR_NOT_SUPPORTED", call, why);
    Session::current()->send(wire::MessageKind::unsupported, 0,
                             std::as_bytes(std::span(call, std::strlen(call))));
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace interposer
