// cuCheckpointProcess* of this process. The memory of a simulated GPU is memory of the process, so
// a checkpoint only gives up what is charged to the GPUs.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "native/simulator/allocations.h"
#include "native/simulator/call_scope.h"
#include "native/simulator/checkpoint.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/handles.h"
#include "native/simulator/machine.h"
#include "native/simulator/shared_memory.h"
#include "native/simulator/stream.h"

namespace simulator {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPoll = std::chrono::microseconds(200);

struct Checkpoint {
  std::mutex turn;  ///< one request at a time
  std::atomic<CUprocessState> state{CU_PROCESS_STATE_RUNNING};
  int pipe[2] = {-1, -1};  ///< of the process that requests are for
};

Checkpoint& checkpoint() {
  static auto& only = *new Checkpoint;
  return only;
}

/// The driver 580 opens a pipe of the process, which it made at its start, by its path: also for
/// the process itself. That depends on who owns the pipe.
bool opensPipe(const Checkpoint& process) {
  const std::string path = "/proc/self/fd/" + std::to_string(process.pipe[0]);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file >= 0) close(file);
  return file >= 0;
}

bool isIdle() {
  if (callsRun()) return false;
  const auto alive = [](const Context& context) { return context.alive.load(); };
  for (const auto& context : Handles<Context>::all().where(alive)) {
    const auto streams = streamsOf(*context);
    if (!std::ranges::all_of(streams, [](const auto& stream) { return stream->idle(); }))
      return false;
  }
  return true;
}

/// False after `milliseconds`; 0: never.
bool awaitIdle(unsigned milliseconds) {
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (!isIdle()) {
    if (milliseconds > 0 && Clock::now() >= end) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

/// The driver 580 refuses memory that is managed, and memory of several processes.
bool hasWhatStays() {
  bool managed = false;
  Allocations::all().each([&](const Allocation& allocation) { managed |= allocation.managed(); });
  return managed || sharesMemory();
}

bool isSame(const CUuuid& one, const CUuuid& other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

/// The index of a visible GPU: the driver 580 restores on no other one.
std::optional<int> indexOf(const CUuuid& uuid) {
  const auto device =
      std::ranges::find_if(devices(), [&](const auto& each) { return isSame(each->uuid, uuid); });
  if (device == devices().end() || hasFailed((*device)->index)) return std::nullopt;
  return (*device)->index;
}

/// Where each visible GPU goes. Empty if the pairs leave one out, name an unknown one, or give two
/// the same place. GPUs with different memory count as different chips.
std::vector<int> placesBy(std::span<const CUcheckpointGpuPair> pairs) {
  std::vector<int> places;
  for (const auto& device : devices()) {
    const auto pair = std::ranges::find_if(
        pairs, [&](const CUcheckpointGpuPair& each) { return isSame(each.oldUuid, device->uuid); });
    const auto place = pair == pairs.end() ? std::nullopt : indexOf(pair->newUuid);
    if (!place || deviceMemory(*place) != device->totalBytes ||
        std::ranges::find(places, *place) != places.end())
      return {};
    places.push_back(*place);
  }
  return pairs.size() == places.size() ? places : std::vector<int>();
}

std::vector<int> presentPlaces() {
  std::vector<int> places;
  for (const auto& device : devices()) places.push_back(device->index);
  return places;
}

template <class Number, std::size_t count>
bool areZero(const Number (&numbers)[count]) {
  return std::ranges::all_of(numbers, [](Number number) { return number == 0; });
}

/// Runs a request for this process: body(Checkpoint&).
template <class Body>
CUresult inState(int pid, CUprocessState wanted, Body&& body) noexcept {
  return guarded([&]() -> CUresult {
    if (const CUresult status = callable(); status != CUDA_SUCCESS) return status;
    if (pid != getpid()) return CUDA_ERROR_NOT_SUPPORTED;
    Checkpoint& process = checkpoint();
    const std::lock_guard turn(process.turn);
    if (process.state != wanted) return CUDA_ERROR_ILLEGAL_STATE;
    return opensPipe(process) ? body(process) : CUDA_ERROR_OPERATING_SYSTEM;
  });
}

}  // namespace

bool prepareCheckpoints() { return pipe2(checkpoint().pipe, O_CLOEXEC) == 0; }

}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuCheckpointProcessGetState(int pid, CUprocessState* state) {
  return guarded([&]() -> CUresult {
    if (const CUresult status = callable(); status != CUDA_SUCCESS) return status;
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (pid != getpid()) return CUDA_ERROR_NOT_SUPPORTED;
    *state = checkpoint().state;
    return CUDA_SUCCESS;
  });
}

/// Waits for the calls and the work that have begun.
DRIVER_CALL cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args) {
  return inState(pid, CU_PROCESS_STATE_RUNNING, [&](Checkpoint& process) -> CUresult {
    if (args != nullptr && (args->reserved0 != 0 || !areZero(args->reserved1)))
      return CUDA_ERROR_INVALID_VALUE;
    holdCalls();
    if (!awaitIdle(args == nullptr ? 0 : args->timeoutMs)) {
      releaseCalls();
      return CUDA_ERROR_NOT_READY;
    }
    process.state = CU_PROCESS_STATE_LOCKED;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* args) {
  return inState(pid, CU_PROCESS_STATE_LOCKED, [&](Checkpoint& process) -> CUresult {
    if (args != nullptr && !areZero(args->reserved)) return CUDA_ERROR_INVALID_VALUE;
    if (hasWhatStays()) return CUDA_ERROR_NOT_SUPPORTED;
    for (const auto& device : devices()) device->vacate();
    process.state = CU_PROCESS_STATE_CHECKPOINTED;
    return CUDA_SUCCESS;
  });
}

/// Without room, the process cannot be restored any more, as with the driver 580.
DRIVER_CALL cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* args) {
  return inState(pid, CU_PROCESS_STATE_CHECKPOINTED, [&](Checkpoint& process) -> CUresult {
    const bool remaps = args != nullptr && args->gpuPairsCount > 0;
    if (args != nullptr &&
        (args->reserved1 != 0 || !areZero(args->reserved) || (remaps && args->gpuPairs == nullptr)))
      return CUDA_ERROR_INVALID_VALUE;
    const std::vector<int> places =
        remaps ? placesBy({args->gpuPairs, args->gpuPairsCount}) : presentPlaces();
    if (places.size() != devices().size()) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (devices()[i]->occupy(places[i])) continue;
      process.state = CU_PROCESS_STATE_FAILED;
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    process.state = CU_PROCESS_STATE_LOCKED;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* args) {
  return inState(pid, CU_PROCESS_STATE_LOCKED, [&](Checkpoint& process) -> CUresult {
    if (args != nullptr && !areZero(args->reserved)) return CUDA_ERROR_INVALID_VALUE;
    process.state = CU_PROCESS_STATE_RUNNING;
    releaseCalls();
    return CUDA_SUCCESS;
  });
}
