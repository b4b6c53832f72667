#include "native/worker/session/uses.h"

#include <unistd.h>

namespace worker {

Uses::Slot::Slot(Uses& uses) : uses_(uses) {
  const std::lock_guard lock(uses_.mutex_);
  uses_.slots_.push_back(this);
}

Uses::Slot::~Slot() {
  const std::lock_guard lock(uses_.mutex_);
  uses_.slots_.remove(this);
}

/// Passing the ticket publishes both words to later ticket holders.
void Uses::Slot::hold(const void* object, CUcontext context) {
  object_.store(object, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
}

void Uses::Slot::release() {
  object_.store(nullptr, std::memory_order_release);
  context_.store(nullptr, std::memory_order_release);
}

/// The wait may be slow: correct programs do not destroy an object that another thread waits for.
void Uses::pause() { usleep(100); }

}  // namespace worker
