#include "native/worker/session/idle_contexts.h"

#include <chrono>

#include "native/worker/driver/capture_status.h"
#include "native/worker/session/in_context.h"
#include "native/worker/session/session.h"
#include "wire/wait.h"

namespace worker {

IdleContexts::~IdleContexts() {
  if (thread_.joinable()) thread_.join();
}

bool IdleContexts::await(std::uint64_t deadline) {
  std::unique_lock lock(mutex_);
  if (running_) return false;
  if (thread_.joinable()) thread_.join();
  running_ = wanted_ = true;
  refused_ = false;
  thread_ = std::thread(
      [this, contexts = session_.handles.objects(wire::HandleKind::context)] { run(contexts); });
  const std::uint64_t now = wire::monotonicNanoseconds();
  const std::chrono::nanoseconds patience(deadline > now ? deadline - now : 0);
  wanted_ = ended_.wait_for(lock, patience, [this] { return !running_; });
  if (wanted_) thread_.join();
  return wanted_ && !refused_;
}

/// The list of uses keeps the client from destroying the context meanwhile. An error that is of no
/// capture is that of work that has failed: the client's next call returns it too.
void IdleContexts::run(const std::vector<void*>& contexts) {
  Uses::Slot use(session_.uses);
  bool refused = false;
  for (void* object : contexts) {
    auto* const context = static_cast<CUcontext>(object);
    {
      const std::lock_guard lock(mutex_);
      if (!wanted_) break;
      use.hold(nullptr, context);
    }
    const InContext current(session_.driver, context);
    const CUresult status =
        current.status() == CUDA_SUCCESS ? session_.driver.cuCtxSynchronize() : CUDA_SUCCESS;
    session_.noteFault(status);
    use.release();
    if (isOfCapture(status)) refused = true;
  }
  const std::lock_guard lock(mutex_);
  running_ = false;
  refused_ = refused;
  ended_.notify_all();
}

}  // namespace worker
