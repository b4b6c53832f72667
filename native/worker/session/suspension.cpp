#include "native/worker/session/suspension.h"

#include <unistd.h>

#include <utility>

#include "native/worker/session/session.h"
#include "wire/wait.h"

namespace worker {

namespace {

constexpr useconds_t kPollMicroseconds = 500;
constexpr std::uint64_t kDropNanoseconds = 1'000'000'000;
constexpr const char* kCallRuns = "one of its calls does not end";

}  // namespace

std::string Suspension::suspend(std::uint64_t timeoutNanoseconds) {
  if (suspended_) return {};
  const std::uint64_t deadline = wire::monotonicNanoseconds() + timeoutNanoseconds;
  if (std::string sentence = stopCalls(deadline); !sentence.empty()) return sentence;
  if (!contexts_.await(deadline)) {
    session_.readers.proceed();
    return "its work on the GPU does not end";
  }
  session_.pendingFrees.settle();  // all of them: no other thread frees memory from now on
  session_.memory.trim();
  if (std::string sentence = session_.swap.refusal(); !sentence.empty()) {
    session_.readers.proceed();
    return sentence;
  }
  suspended_ = true;
  return {};
}

std::string Suspension::leave(OwnedFile arena) {
  return suspended_ ? session_.swap.leave(std::move(arena)) : "it is not suspended";
}

std::string Suspension::resume() {
  if (!suspended_) return {};
  if (std::string sentence = session_.swap.enter(); !sentence.empty()) return sentence;
  suspended_ = false;
  session_.readers.proceed();
  return {};
}

std::string Suspension::drop() {
  if (suspended_) return session_.swap.drop();
  if (!session_.readers.stop(wire::monotonicNanoseconds() + kDropNanoseconds)) return kCallRuns;
  std::string sentence = session_.swap.drop();
  session_.readers.proceed();
  return sentence;
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
    if (!session_.readers.stop(deadline)) return kCallRuns;
    if (!session_.captures.any()) return {};
    session_.readers.proceed();
  }
}

}  // namespace worker
