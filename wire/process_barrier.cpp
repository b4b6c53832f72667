#include "wire/process_barrier.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace wire {

namespace {

// From linux/membarrier.h, which is missing or incomplete in older headers.
enum Command : int {
  kGlobalExpedited = 1 << 1,
  kRegisterGlobalExpedited = 1 << 2,
  kPrivateExpedited = 1 << 3,
  kRegisterPrivateExpedited = 1 << 4
};
#if defined(SYS_membarrier)
constexpr long kMembarrier = SYS_membarrier;
#elif defined(__x86_64__)
constexpr long kMembarrier = 324;
#elif defined(__aarch64__)
constexpr long kMembarrier = 283;
#endif

bool membarrier(Command command) { return syscall(kMembarrier, command, 0, 0) == 0; }

}  // namespace

ThreadBarrier::ThreadBarrier() : expedited_(membarrier(kRegisterPrivateExpedited)) {}

/// The fence orders this thread even if no other one runs.
void ThreadBarrier::rare() const {
  fullFence();
  if (expedited_) membarrier(kPrivateExpedited);
}

void registerForProcessBarriers() {
  if (membarrier(kRegisterGlobalExpedited))
    detail::registeredForProcessBarriers.store(true, std::memory_order_relaxed);
}

bool executeProcessBarrier() { return membarrier(kGlobalExpedited); }

}  // namespace wire
