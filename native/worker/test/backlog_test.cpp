// What a backlog guesses from what it saw, before a driver whose GPU is played: one stream, on
// which work ends when the test says so.
#include "native/worker/gate/backlog.h"

#include "wire/test/check.h"

namespace {

using worker::Backlog;

constexpr std::uint64_t kMicrosecond = 1'000;
constexpr std::uint64_t kShape = 7, kOther = 8;

bool idle = true;
const CUstream stream = nullptr;

worker::Driver playedDriver() {
  worker::Driver driver{};
  driver.cuEventCreate = [](CUevent* event, unsigned) {
    return *event = reinterpret_cast<CUevent>(&idle), CUDA_SUCCESS;
  };
  driver.cuEventRecord = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  driver.cuEventQuery = [](CUevent) { return idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; };
  driver.cuStreamQuery = [](CUstream) { return idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; };
  return driver;
}

struct Fixture {
  const worker::Driver driver = playedDriver();
  worker::Durations durations;
  Backlog backlog{driver, nullptr, 0, durations};
  std::uint64_t now = 1'000'000 * kMicrosecond;

  std::uint64_t guessOf(std::uint64_t shape) { return durations.at(durations.find(shape)); }
  void submit(std::uint64_t shape, int pieces = 1) {
    for (int i = 0; i < pieces; ++i) backlog.submitted(stream, shape, now);
  }
  /// All that was asked for until `questions` were made is done, and seen so long after it was
  /// submitted.
  void see(std::vector<Backlog::Question> questions, std::uint64_t took) {
    now += took;
    backlog.ask(questions);
    backlog.learn(questions, now);
  }
  void run(std::uint64_t shape, int pieces, std::uint64_t took) {
    submit(shape, pieces);
    see(backlog.questions(now, true), took);
  }
};

void testWorkNeverSeenBefore() {
  Fixture f;
  f.submit(kShape);
  CHECK(f.backlog.unknown() == 1 && f.backlog.isUncertain(f.now) && !f.backlog.empty());
  idle = false;
  f.see(f.backlog.questions(f.now, true), 5 * kMicrosecond);
  CHECK(f.backlog.unknown() == 1);
  idle = true;
  f.see(f.backlog.questions(f.now, true), 5 * kMicrosecond);
  CHECK(f.guessOf(kShape) == 10 * kMicrosecond && f.backlog.empty() &&
        f.backlog.remaining(f.now) == 0);
  // The part of the rest is known.
  f.submit(kShape);
  f.run(kOther, 1, 40 * kMicrosecond);
  CHECK(f.guessOf(kShape) == 10 * kMicrosecond && f.guessOf(kOther) == 30 * kMicrosecond);
}

/// Twenty kernels of one shape that seem to take three times as long, because somebody looked late,
/// say little about each of them.
void testALateLook() {
  Fixture f;
  f.run(kShape, 1, 10 * kMicrosecond);
  f.run(kShape, 20, 600 * kMicrosecond);
  CHECK(f.guessOf(kShape) == 15 * kMicrosecond);
  for (int i = 0; i < 20; ++i) f.run(kShape, 20, 200 * kMicrosecond);
  CHECK(f.guessOf(kShape) < 11 * kMicrosecond);
}

/// What was on the device already when the guess was found too short makes it longer no second
/// time.
void testManyInFlight() {
  Fixture f;
  f.run(kShape, 1, 10 * kMicrosecond);
  constexpr int kMarkers = 8;
  f.submit(kShape, kMarkers * 40);
  CHECK(f.backlog.questions(f.now, false).size() == kMarkers);
  for (int i = 0; i < kMarkers; ++i)
    f.see({f.backlog.questions(f.now, false).front()}, 1600 * kMicrosecond);
  CHECK(f.guessOf(kShape) > 30 * kMicrosecond && f.guessOf(kShape) <= 40 * kMicrosecond);
  CHECK(f.backlog.empty() && f.backlog.remaining(f.now) == 0);
}

/// Work that found the GPU idle was only looked for at that moment: it may have been done for long.
void testAfterAPause() {
  Fixture f;
  f.run(kShape, 1, 10 * kMicrosecond);
  f.now += 100 * kMicrosecond;
  f.run(kShape, 20, 600 * kMicrosecond);
  CHECK(f.guessOf(kShape) == 10 * kMicrosecond);
  f.now += 100 * kMicrosecond;
  f.run(kShape, 20, 100 * kMicrosecond);
  CHECK(f.guessOf(kShape) == 8'750);
}

}  // namespace

int main() {
  testWorkNeverSeenBefore();
  testALateLook();
  testManyInFlight();
  testAfterAPause();
  return wire::test::checkedResult();
}
