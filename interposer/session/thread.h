// State of one thread of the program: its channel to the worker and its stack of current contexts.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cuda_abi.h"
#include "interposer/contexts/known_limits.h"
#include "interposer/session/completed.h"
#include "wire/channel.h"

namespace interposer {

class Session;
struct Kernel;

inline constexpr std::size_t kKernelsRemembered = 64;

struct Thread {
  /// The calling thread's; created at its first use, ended with the thread.
  static Thread& current();

  /// The channel, opened at first use; null when the worker is gone.
  wire::ClientChannel* openChannel(Session& session);

  CUcontext context() const { return contexts.empty() ? nullptr : contexts.back(); }

  const std::uint64_t number;         ///< counted from 1; no other thread has it, even later
  std::vector<CUcontext> contexts;    ///< the stack; its last element is current
  CUcontext workerContext = nullptr;  ///< what the worker thread has current,
  unsigned contextChange = 0;         ///< as of this many changes of contexts (contexts.h)
  CUcontext deviceContext = nullptr;  ///< the context that has the values below,
  unsigned deviceChange = 0;          ///< as of this many changes
  CUdevice device = 0;
  std::uint8_t contextBits = 0;  ///< of what that context owns (wire/handle_table.h)
  /// By their handles: where findKernel() looks first.
  std::array<std::pair<std::uint64_t, std::shared_ptr<Kernel>>, kKernelsRemembered> kernels{};
  Completed completed;
  KnownLimits limits;
  std::uint64_t changes = 0;  ///< count of changes (submission_order.h) behind the last call
  unsigned waiting = 0;       ///< above 0: all calls wait for their replies (Waiting in call.h)
  CUstreamCaptureMode captureMode = CU_STREAM_CAPTURE_MODE_GLOBAL;

  std::unique_ptr<wire::ClientChannel> channel;
  Session* session = nullptr;  ///< of the channel
};

}  // namespace interposer
