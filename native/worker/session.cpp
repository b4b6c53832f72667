#include "native/worker/session.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

#include "native/worker/memory_size.h"
#include "native/worker/thread.h"

namespace worker {

Session::Session(int connection, Report& owner, Quota& account, Figures& counted, Output& printed, const Limits& most)
    : report(owner),
      quota(account),
      figures(counted),
      limits(most),
      handles(&account.handles()),
      output(printed),
      images(account),
      pools(driver, account),
      contexts(account, counted, most.contextMemory),
      streams(account, most.streamMemory),
      localMemory(driver, account),
      reserves(driver, account, most.heapMemory),
      connection_(connection),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  output.setWake(wake_);
  quota.setReclaim([this] { pools.trim(); });
  quota.setRefused([this](std::uint64_t bytes) { reportOverQuota(bytes); });
}

void Session::reportOverQuota(std::uint64_t asked) {
  if (!quotaRefused_.due()) return;
  const std::uint64_t used = quota.used(), limit = quota.limit();
  report.event("overQuota", JsonObject().add("asked", asked).add("used", used).add("limit", limit));
  output.log(formatMemorySize(asked) + " of GPU memory were asked for where " + formatMemorySize(used) + " of the quota of " +
             formatMemorySize(limit) +
             " were in use: CUDA_ERROR_OUT_OF_MEMORY. Let the program use less, or ask for a larger part of the GPU");
}

bool Session::send(wire::MessageKind kind, std::uint64_t id, std::span<const std::byte> payload) {
  const std::lock_guard lock(sendMutex_);
  return wire::sendMessage(connection_, kind, id, payload);
}

namespace {

/// On whatever thread of ours made the failing call.
void forward(void* session, CUlogLevel, char* message, size_t length) { static_cast<Session*>(session)->output.log({message, length}); }

}  // namespace

void Session::forwardDriverLog() {
  CUlogsCallbackHandle handle = nullptr;
  if (driver.cuLogsRegisterCallback != nullptr) driver.cuLogsRegisterCallback(forward, this, &handle);
}

void Session::contextEnded(CUcontext context) {
  contexts.ended(context);
  images.forgetOwned(context);
  shared.ended(context);
  streams.ended(context);
  localMemory.ended(context);
  reserves.ended(context);
  codeEnded();
}

void Session::watchPools() {
  if (!poolsWatched_.exchange(true)) wake();
}

/// First the mark, then the look: an allocation that comes between is seen, or wakes.
bool Session::settlePools() {
  poolsWatched_.store(false);
  const bool hold = pools.settleUnlessBusy();
  if (hold) poolsWatched_.store(true);
  return hold;
}

void Session::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
}

void Session::fail(const std::string& why) {
  {
    const std::lock_guard lock(failMutex_);
    if (failure_.empty()) failure_ = why;
  }
  wake();
}

bool Session::handlesUsedUp() {
  if (quota.handlesLeft(limits.handles)) return false;
  if (!handlesRefused_.due()) return true;
  report.event("overHandles", JsonObject().add("limit", limits.handles));
  output.log("there are " + std::to_string(limits.handles) +
             " streams, events, modules and other objects, and the allocation allows no more: CUDA_ERROR_OUT_OF_MEMORY. Destroy what is "
             "not needed, in this program or another one of the allocation");
  return true;
}

bool Session::pinnedFits(std::uint64_t bytes) {
  if (quota.chargePinned(bytes, limits.pinned)) return count(figures.pinned, bytes), true;
  if (!pinnedRefused_.due()) return false;
  report.event("overPinned", JsonObject().add("asked", bytes).add("limit", limits.pinned));
  output.log(formatMemorySize(bytes) + " of pinned host memory were asked for, which is more than is left of the " +
             formatMemorySize(limits.pinned) + " that the allocation allows: CUDA_ERROR_OUT_OF_MEMORY. Pin less, or have the limit raised");
  return false;
}

void Session::noteFault(CUresult result) {
  CUresult none = CUDA_SUCCESS;
  if (wire::isFault(result) && fault_.compare_exchange_strong(none, result)) count(figures.faults);
}

void Session::startThread(int channelFile) {
  auto channel = wire::WorkerChannel::attach(channelFile);
  if (channel == nullptr) return fail("the client opened a channel that cannot be used");
  if (!quota.chargeThread(limits.threads)) {
    report.event("overThreads", JsonObject().add("limit", limits.threads));
    return fail("more than " + std::to_string(limits.threads) +
                " threads use CUDA, which the allocation does not allow; use fewer threads, or have the limit raised");
  }
  count(figures.threads);
  std::thread([this, owned = std::move(channel)]() mutable {
    Thread(*this, std::move(owned)).serve();
    quota.refundThread();
    discount(figures.threads);
  }).detach();
}

void Session::noteUnsupported(std::string_view call) {
  if (unsupported_.isNews(call)) report.event("unsupported", JsonObject().add("call", call));
}

bool Session::receive() {
  wire::Message message;
  if (!wire::receiveMessage(connection_, message)) return false;
  switch (message.header.kind) {
    case wire::MessageKind::channel: startThread(message.file); break;
    case wire::MessageKind::memory: shared.put(message.header.id, message.file); return true;
    case wire::MessageKind::callbackDone: callbacks.done(message.header.id); break;
    case wire::MessageKind::unsupported:
      noteUnsupported({reinterpret_cast<const char*>(message.payload.data()), message.payload.size()});
      break;
    default: fail("the client sent a message of an unknown kind");
  }
  if (message.file >= 0) close(message.file);
  return true;
}

namespace {

/// How long other sessions of the allocation may miss what a pool of this one has released.
constexpr int kPoolMilliseconds = 100;

}  // namespace

std::string Session::serve(int clientPidfd) {
  // A pidfd, because a forked child of the client may keep the connection open.
  pollfd waits[] = {{connection_, POLLIN, 0}, {wake_, POLLIN, 0}, {clientPidfd, POLLIN, 0}};
  for (;;) {
    if (poll(waits, clientPidfd >= 0 ? 3 : 2, settlePools() ? kPoolMilliseconds : -1) <= 0) continue;
    if (waits[1].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto bytes = read(wake_, &count, sizeof count);
      output.send(*this);
      const std::lock_guard lock(failMutex_);
      if (!failure_.empty()) return failure_;
    }
    if (waits[2].revents != 0 || (waits[0].revents != 0 && !receive())) return "client exited";
  }
}

}  // namespace worker
