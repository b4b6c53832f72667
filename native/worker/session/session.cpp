#include "native/worker/session/session.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iterator>

#include "native/worker/reports/memory_size.h"
#include "native/worker/session/own_question.h"

namespace worker {

Session::Session(int file, Report& owner, Quota& account, Figures& counted, Output& printed,
                 const Limits& most)
    : connection(file),
      report(owner),
      quota(account),
      figures(counted),
      limits(most),
      handles(&account.handles()),
      output(printed),
      captures(driver),
      memory(captures, [this](CUcontext context) { return ownerOf(context); }),
      slack(account, memory),
      pendingFrees(account, memory, slack),
      sharing(account.exports),
      fileExports(sharing, account.exports),
      images(account),
      pools(driver, account, memory.pools()),
      graphMemory(driver, account),
      contexts(account, counted, most.contextMemory),
      streams(driver, account, most.streamMemory),
      localMemory(driver, account, [this](CUcontext context) { return ownerOf(context); }),
      reserves(driver, account, most.heapMemory,
               [this](CUcontext context) { return ownerOf(context); }),
      held(driver, account),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      failed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  connection.endsWith(failed_);
  output.setWake(wake_);
  quota.setReclaim([this] {
    const RelaxedCapture relaxed(driver, captures);
    fileExports.settle();
    pools.trim();
    graphMemory.trim();
  });
  quota.setRefused([this](std::uint64_t bytes) { reportOverQuota(bytes); });
}

void Session::reportOverQuota(std::uint64_t asked) {
  if (!quotaRefused_.allows()) return;
  const std::uint64_t used = quota.used(), limit = quota.limit();
  report.event("overQuota", JsonObject().add("asked", asked).add("used", used).add("limit", limit));
  output.log(formatMemorySize(asked) + " of GPU memory were asked for where " +
             formatMemorySize(used) + " of the quota of " + formatMemorySize(limit) +
             " were in use: CUDA_ERROR_OUT_OF_MEMORY. Let the program use less, or ask for a "
             "larger part of the GPU");
}

namespace {

/// Called by the driver on the thread whose call failed.
void forward(void* session, CUlogLevel, char* message, size_t length) {
  if (!OwnQuestion::isAsked()) static_cast<Session*>(session)->output.log({message, length});
}

}  // namespace

void Session::forwardDriverLog() {
  CUlogsCallbackHandle handle = nullptr;
  if (driver.cuLogsRegisterCallback != nullptr)
    driver.cuLogsRegisterCallback(forward, this, &handle);
}

void Session::awaitUnused(const Uses::Slot& own, const void* object) {
  const std::uint64_t context =
      handles.handleOf(wire::HandleKind::context, const_cast<void*>(object));
  uses.await(own, [&](const void* used) {
    return used == object || (context != 0 && handles.endsWith(const_cast<void*>(used), context));
  });
}

CUcontext Session::ownerOf(CUcontext context) const {
  const auto device = greenContexts.deviceOf(context);
  if (!device) return context;
  return static_cast<CUcontext>(
      handles.find(wire::HandleKind::context, wire::primaryContextHandle(*device)));
}

/// A green context is part of the primary one, which is in the list too.
CUcontext Session::copyContext() const {
  if (fault() != CUDA_SUCCESS) return nullptr;
  for (void* object : handles.objects(wire::HandleKind::context)) {
    auto* const context = static_cast<CUcontext>(object);
    if (ownerOf(context) == context) return context;
  }
  return nullptr;
}

void Session::contextEnded(CUcontext context) {
  for (const std::uint64_t graph : captures.ended(context)) handles.remove(graph);
  for (const CUdeviceptr address : memory.contextEnded(context))
    fileExports.ended({ExportTable::Kind::memoryFile, address});
  pendingFrees.contextEnded(context);
  slack.settle();
  sharing.contextEnded(context);
  contexts.ended(context);
  held.contextEnded(context);
  images.forgetOwned(context);
  shared.ended(context);
  swap.contextEnded(context);
  textureObjects.ended(context);
  quota.refund(physicalMemory.arraysEnded(context));
  streams.ended(context);
  localMemory.ended(context);
  reserves.ended(context);
  codeEnded();
}

void Session::watchPools() {
  if (!poolsWatched_.exchange(true)) wake();
}

/// Clears the mark before it checks the pools, so that a concurrent allocation is either seen or
/// wakes the thread.
bool Session::settlePools() {
  poolsWatched_.store(false);
  const bool pending = pendingFrees.settle();
  const bool hold = pools.settleUnlessBusy() || pending;
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
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(failed_, &one, sizeof one);
  wake();
}

bool Session::handlesUsedUp() {
  if (quota.handlesLeft(limits.handles)) return false;
  if (!handlesRefused_.allows()) return true;
  report.event("overHandles", JsonObject().add("limit", limits.handles));
  output.log("there are " + std::to_string(limits.handles) +
             " streams, events, modules and other objects, and the allocation allows no more: "
             "CUDA_ERROR_OUT_OF_MEMORY. Destroy what is "
             "not needed, in this program or another one of the allocation");
  return true;
}

bool Session::pinnedFits(std::uint64_t bytes) {
  if (quota.chargePinned(bytes, limits.pinned)) return count(figures.pinned, bytes), true;
  if (!pinnedRefused_.allows()) return false;
  report.event("overPinned", JsonObject().add("asked", bytes).add("limit", limits.pinned));
  output.log(
      formatMemorySize(bytes) +
      " of pinned host memory were asked for, which is more than is left of the " +
      formatMemorySize(limits.pinned) +
      " that the allocation allows: CUDA_ERROR_OUT_OF_MEMORY. Pin less, or have the limit raised");
  return false;
}

void Session::noteOverrun(std::uint32_t seconds) {
  const std::string sentence = "work of this program ran on for " + std::to_string(seconds) +
                               " s after its turn on the GPU while other programs waited, which "
                               "the node does not allow: the session ends. "
                               "Give the GPU shorter kernels";
  report.event("overrun", JsonObject().add("seconds", seconds));
  output.log(sentence);
  fail(sentence);
}

void Session::reportUnknownLimit(CUlimit limit, std::uint64_t value) {
  if (!limitRefused_.allows()) return;
  output.log("the limit " + std::to_string(limit) + " of cuCtxSetLimit was to be raised to " +
             std::to_string(value) +
             ", which takes an unknown part of the GPU's memory: CUDA_ERROR_NOT_SUPPORTED. Leave "
             "this limit at its default");
}

void Session::reportRefusedCapture(CUresult status) {
  if (!captureRefused_.allows()) return;
  output.log(
      "a stream was to capture while it or a default stream has work. The driver refused an event "
      "behind that work with error " +
      std::to_string(status) +
      ", so the call returned that error. Wait for the stream before the capture");
}

void Session::noteFault(CUresult result) {
  CUresult none = CUDA_SUCCESS;
  if (wire::isFault(result) && fault_.compare_exchange_strong(none, result)) count(figures.faults);
}

void Session::noteUnsupported(std::string_view call) {
  if (unsupported_.isNew(call)) report.event("unsupported", JsonObject().add("call", call));
}

/// Reports the new names of a message in one event.
void Session::noteNotFound(std::string_view names, bool byRuntime) {
  std::string news;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    if (notFound_.isNew(name)) news.append(news.empty() ? "" : ",").append(name);
  }
  if (!news.empty())
    report.event("notFound",
                 JsonObject().add("by", byRuntime ? "runtime" : "program").add("calls", news));
}

bool Session::receive(const ServeChannel& serveChannel) {
  wire::Message message;
  if (!connection.receive(message)) return false;
  switch (message.header.kind) {
    case wire::MessageKind::channel:
      serveChannel(message.file, message.header.id == wire::kAnswersFaults);
      break;
    case wire::MessageKind::memory: shared.put(message.header.id, message.file); return true;
    case wire::MessageKind::callbackDone: callbacks.done(message.header.id); break;
    case wire::MessageKind::unsupported:
      noteUnsupported(
          {reinterpret_cast<const char*>(message.payload.data()), message.payload.size()});
      break;
    case wire::MessageKind::notFound:
      noteNotFound({reinterpret_cast<const char*>(message.payload.data()), message.payload.size()},
                   message.header.id == 1);
      break;
    default: fail("the client sent a message of an unknown kind");
  }
  if (message.file >= 0) close(message.file);
  return true;
}

namespace {

/// Interval at which pools are polled. For so long, other sessions may not see memory that a pool
/// has released.
constexpr int kPoolMilliseconds = 100;

}  // namespace

/// Reads what the client sent before it was gone: messages, then frames. A forked child of the
/// client may still have the connection. It can send nothing more, and the rest of a message that
/// it does not complete is not waited for.
void Session::drain(const ServeChannel& serveChannel) {
  shutdown(connection.file(), SHUT_RD);
  while (receive(serveChannel)) {
  }
  shared.close();
  readers.drain();
}

std::string Session::serve(int clientPidfd, const ServeChannel& serveChannel) {
  // A pidfd, because a forked child of the client may keep the connection open.
  // poll() ignores a negative one.
  pollfd waits[] = {{connection.file(), POLLIN, 0},
                    {wake_, POLLIN, 0},
                    {clientPidfd, POLLIN, 0},
                    {fileExports.hangUps(), POLLIN, 0}};
  if (clientPidfd >= 0) connection.endsWith(clientPidfd);
  for (;;) {
    if (poll(waits, std::size(waits), settlePools() ? kPoolMilliseconds : -1) <= 0) continue;
    if (waits[3].revents != 0) fileExports.settle();
    if (waits[1].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto bytes = read(wake_, &count, sizeof count);
      output.send(connection);
    }
    const bool gone = waits[2].revents != 0 || (waits[0].revents != 0 && !receive(serveChannel));
    if (const std::lock_guard lock(failMutex_); !failure_.empty()) return failure_;
    if (gone) return drain(serveChannel), "client exited";
  }
}

}  // namespace worker
