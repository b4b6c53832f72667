#include "native/worker/session/suspension.h"

#include <unistd.h>

#include "native/worker/session/session.h"
#include "wire/wait.h"

namespace worker {

namespace {

constexpr useconds_t kPollMicroseconds = 500;

}  // namespace

/// To move the session's memory, do it here: where the session is about to be suspended, and where
/// it is about to go on.
std::string Suspension::suspend(std::uint64_t timeoutNanoseconds) {
  if (suspended_) return {};
  const std::uint64_t deadline = wire::monotonicNanoseconds() + timeoutNanoseconds;
  if (std::string sentence = stopCalls(deadline); !sentence.empty()) return sentence;
  if (!contexts_.await(deadline)) {
    session_.readers.proceed();
    return "its work on the GPU does not end";
  }
  suspended_ = true;
  return {};
}

void Suspension::resume() {
  if (!suspended_) return;
  suspended_ = false;
  session_.readers.proceed();
}

/// A context in which a stream captures must not be waited for: that would end the capture. A
/// capture ends by later calls, so these are not stopped meanwhile.
std::string Suspension::stopCalls(std::uint64_t deadline) {
  for (;; usleep(kPollMicroseconds)) {
    const bool late = wire::monotonicNanoseconds() >= deadline;
    if (session_.captures.any()) {
      if (late) return "it captures work into a graph";
      continue;
    }
    if (!session_.readers.stop(deadline)) return "one of its calls does not end";
    if (!session_.captures.any()) return {};
    session_.readers.proceed();
  }
}

}  // namespace worker
