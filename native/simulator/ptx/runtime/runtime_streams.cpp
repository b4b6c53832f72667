// Streams and events of the device runtime. They belong to a grid and end with it.
#include <memory>
#include <utility>

#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/runtime/children.h"
#include "native/simulator/ptx/runtime/device_runtime.h"

namespace simulator::ptx {
namespace {

// cudaStreamLegacy and the named streams
constexpr std::uint64_t kDefault = 0, kLegacy = 1, kPerThread = 2, kTailLaunch = 3,
                        kFireAndForget = 4;
constexpr std::uint32_t kStreamNonBlocking = 1, kEventDisableTiming = 2;

/// Kinds of StreamKey. Zero is the stream of tail launches.
enum Kind : std::uint64_t { kBlock = 1, kThread, kCreated, kSingle };

std::uint32_t threadOf(const RuntimeCall& call) { return call.warp.index * kLanes + call.lane; }

Children& childrenOf(const RuntimeCall& call) { return call.warp.block->run->children(); }

/// The named streams have no events.
bool hasEvents(std::uint64_t stream) { return stream != kTailLaunch && stream != kFireAndForget; }

std::uint64_t waitFor(const RuntimeCall& call, std::uint64_t stream) {
  const auto mark = childrenOf(call).event(call.arguments[1]);
  if (!mark) return CUDA_ERROR_INVALID_HANDLE;
  if (!hasEvents(stream)) return CUDA_ERROR_INVALID_VALUE;
  return call.submit(stream, {nullptr, *mark, nullptr});
}

std::uint64_t recordIn(const RuntimeCall& call, std::uint64_t stream) {
  if (!childrenOf(call).event(call.arguments[0])) return CUDA_ERROR_INVALID_HANDLE;
  if (!hasEvents(stream)) return CUDA_ERROR_INVALID_VALUE;
  const auto mark = std::make_shared<std::atomic<bool>>(false);
  const std::uint64_t status = call.submit(stream, {nullptr, nullptr, mark});
  if (status == CUDA_SUCCESS) childrenOf(call).record(call.arguments[0], mark);
  return status;
}

}  // namespace

std::uint64_t RuntimeCall::submit(std::uint64_t stream, Work work) const {
  Run& run = *warp.block->run;
  Children& children = run.children();
  switch (stream) {
    case kDefault:
    case kLegacy: children.add({kBlock, warp.block->index, 0}, std::move(work)); break;
    case kPerThread:
      children.add({kThread, warp.block->index, threadOf(*this)}, std::move(work));
      break;
    case kTailLaunch: children.addTail(std::move(work)); break;
    case kFireAndForget: children.add({kSingle, run.family.handles++, 0}, std::move(work)); break;
    default:
      if (!children.hasStream(stream)) return CUDA_ERROR_INVALID_HANDLE;
      children.add({kCreated, stream, 0}, std::move(work));
  }
  return CUDA_SUCCESS;
}

std::uint64_t perThread(std::uint64_t stream) { return stream == kDefault ? kPerThread : stream; }

/// cudaStream_t* stream, unsigned flags
std::uint64_t streamCreateWithFlags(const RuntimeCall& call) {
  if (call.number(1) != kStreamNonBlocking) return CUDA_ERROR_INVALID_VALUE;
  return call.write(call.arguments[0], childrenOf(call).newStream());
}

/// Work that was submitted to the stream still executes.
std::uint64_t streamDestroy(const RuntimeCall& call) {
  return childrenOf(call).removeStream(call.arguments[0]) ? CUDA_SUCCESS
                                                          : CUDA_ERROR_INVALID_HANDLE;
}

/// stream, event, unsigned flags
std::uint64_t streamWaitEvent(const RuntimeCall& call) { return waitFor(call, call.arguments[0]); }
std::uint64_t streamWaitEventPerThread(const RuntimeCall& call) {
  return waitFor(call, perThread(call.arguments[0]));
}

/// cudaEvent_t* event, unsigned flags
std::uint64_t eventCreateWithFlags(const RuntimeCall& call) {
  if (call.number(1) != kEventDisableTiming) return CUDA_ERROR_INVALID_VALUE;
  return call.write(call.arguments[0], childrenOf(call).newEvent());
}

/// event, stream
std::uint64_t eventRecord(const RuntimeCall& call) { return recordIn(call, call.arguments[1]); }
std::uint64_t eventRecordPerThread(const RuntimeCall& call) {
  return recordIn(call, perThread(call.arguments[1]));
}

std::uint64_t eventDestroy(const RuntimeCall& call) {
  return childrenOf(call).removeEvent(call.arguments[0]) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace simulator::ptx
