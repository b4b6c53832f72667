#include "native/worker/session/suspension.h"

#include <unistd.h>

#include <limits>
#include <utility>

#include "native/worker/accounts/held_memory.h"
#include "native/worker/session/session.h"
#include "wire/wait.h"

namespace worker {

namespace {

constexpr useconds_t kPollMicroseconds = 500;
constexpr std::uint64_t kDropNanoseconds = 1'000'000'000;
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
constexpr const char* kCallRuns = "one of its calls does not end";

}  // namespace

Suspension::Suspension(Session& session)
    : session_(session), contexts_(session), relocation_(session.memory.below()) {}

std::string Suspension::suspend(std::uint64_t timeoutNanoseconds) {
  if (suspended_) return {};
  if (std::string sentence = stop(wire::monotonicNanoseconds() + timeoutNanoseconds);
      !sentence.empty())
    return sentence;
  session_.pendingFrees.pause();
  session_.memory.trim();
  suspended_ = true;
  return {};
}

std::string Suspension::whyStays() {
  if (session_.memory.isShared() || session_.fileExports.offersMemory())
    return "it shares GPU memory with other processes";
  return session_.swap.whyStays();
}

std::string Suspension::leave(std::uint64_t bytes, OwnedFile file) {
  if (!suspended_) return "it is not suspended";
  if (std::string sentence = whyStays(); !sentence.empty()) return sentence;
  return session_.swap.moveOut(bytes, std::move(file));
}

std::string Suspension::enter(std::uint64_t bytes) { return session_.swap.moveIn(bytes); }

/// The gate's thread asks the driver nothing meanwhile: a call would wait for the end of the move.
std::string Suspension::move(std::string_view gpu) {
  if (relocation_.lost()) return "the driver has lost it";
  if (relocation_.isOn(gpu)) return {};
  if (!suspended_) return "it is not suspended";
  if (std::string sentence = whyStays(); !sentence.empty()) return sentence;
  if (session_.swap.bytes() > 0) return "its GPU memory has not left";
  const Gate::Stillness still(session_.gate);
  std::string sentence = relocation_.moveTo(gpu);
  if (relocation_.lost()) session_.fail(sentence);
  return sentence;
}

std::string Suspension::whyNotParked() {
  if (relocation_.lost()) return "the driver has lost it";
  if (!suspended_) return "it is not suspended";
  if (session_.fileExports.any()) return "it shares objects with other processes";
  if (session_.managed.answersFaults) return "it has managed memory that moves";
  if (std::string sentence = whyStays(); !sentence.empty()) return sentence;
  return session_.swap.bytes() > 0 ? "its GPU memory has not left" : "";
}

/// NVML is put down first: while the driver has the process in a checkpoint, it never returns from
/// that. Threads that allocate memory may be stopped while they do, so nothing is allocated then.
std::string Suspension::park(OwnedFile& answer, int commands) {
  if (std::string sentence = whyNotParked(); !sentence.empty()) return sentence;
  const auto blind = session_.gate.blind();
  closeHeldMemory();
  if (std::string sentence = relocation_.take(); !sentence.empty()) {
    if (relocation_.lost()) session_.fail(sentence);
    reopenHeldMemory();
    return sentence;
  }
  session_.connection.pauseEnds();
  const bool stopped = parking_.stop();
  if (stopped) {
    [[maybe_unused]] const auto written = write(answer.get(), "done\n", 5);
    close(answer.release());
    answer = OwnedFile(parking_.await(commands));
    parking_.proceed();
  }
  session_.connection.resumeEnds();
  std::string sentence = relocation_.putBack();
  if (relocation_.lost()) session_.fail(sentence);
  if (sentence.empty()) reopenHeldMemory();
  return stopped ? sentence : "its threads do not stop, or it has too many files";
}

std::string Suspension::resume() {
  if (!suspended_) return {};
  if (std::string sentence = session_.swap.moveIn(kAll); !sentence.empty()) return sentence;
  suspended_ = false;
  session_.pendingFrees.goOn();
  session_.readers.proceed();
  return {};
}

/// The driver's end of a registration waits for the GPU.
std::string Suspension::drop() {
  if (suspended_) return session_.swap.drop();
  if (std::string sentence = stop(wire::monotonicNanoseconds() + kDropNanoseconds);
      !sentence.empty())
    return sentence;
  std::string sentence = session_.swap.drop();
  session_.readers.proceed();
  return sentence;
}

/// Stops the calls, and waits for the work. After the deadline, the session goes on. Frames that
/// bring managed memory back stop last. They leave no work: each waits for its copy.
std::string Suspension::stop(std::uint64_t deadline) {
  if (std::string sentence = stopCalls(deadline); !sentence.empty()) return sentence;
  if (!contexts_.await(deadline)) {
    session_.readers.proceed();
    return "its work on the GPU does not end";
  }
  return session_.readers.stop(Readers::Stop::all, deadline) ? "" : kCallRuns;
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
    if (!session_.readers.stop(Readers::Stop::calls, deadline)) return kCallRuns;
    if (!session_.captures.any()) return {};
    session_.readers.proceed();
  }
}

}  // namespace worker
