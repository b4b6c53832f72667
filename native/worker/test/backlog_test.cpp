// The estimates of a backlog, with a simulated driver: one stream, whose work ends when the test
// says so.
#include "native/worker/gate/backlog.h"

#include <doctest/doctest.h>

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
    for (int i = 0; i < pieces; ++i) backlog.submitted({stream}, shape, now);
  }
  /// The work that `questions` ask for is done, and seen `took` after it was submitted.
  void see(std::vector<Backlog::Question> questions, std::uint64_t took) {
    now += took;
    backlog.ask(questions, false);
    backlog.learn(questions, now);
  }
  void run(std::uint64_t shape, int pieces, std::uint64_t took) {
    submit(shape, pieces);
    see(backlog.questions(now, true), took);
  }
};

TEST_CASE("the duration of work that was never seen is unknown until it ends") {
  Fixture f;
  f.submit(kShape);
  CHECK(f.backlog.unknown() == 1);
  CHECK(f.backlog.isUncertain(f.now));
  CHECK(!f.backlog.empty());
  idle = false;
  f.see(f.backlog.questions(f.now, true), 5 * kMicrosecond);
  CHECK(f.backlog.unknown() == 1);
  idle = true;
  f.see(f.backlog.questions(f.now, true), 5 * kMicrosecond);
  CHECK(f.guessOf(kShape) == 10 * kMicrosecond);
  CHECK(f.backlog.empty());
  CHECK(f.backlog.remaining(f.now) == 0);
  // A part of the time is that of the known shape.
  f.submit(kShape);
  f.run(kOther, 1, 40 * kMicrosecond);
  CHECK(f.guessOf(kShape) == 10 * kMicrosecond);
  CHECK(f.guessOf(kOther) == 30 * kMicrosecond);
}

// Twenty kernels of one shape that seem to take three times as long say little about each of them.
TEST_CASE("a late look changes an estimate little") {
  Fixture f;
  f.run(kShape, 1, 10 * kMicrosecond);
  f.run(kShape, 20, 600 * kMicrosecond);
  CHECK(f.guessOf(kShape) == 15 * kMicrosecond);
  for (int i = 0; i < 20; ++i) f.run(kShape, 20, 200 * kMicrosecond);
  CHECK(f.guessOf(kShape) < 11 * kMicrosecond);
}

TEST_CASE("work in flight when the estimate was raised does not raise it again") {
  Fixture f;
  f.run(kShape, 1, 10 * kMicrosecond);
  constexpr int kMarkers = 8;
  f.submit(kShape, kMarkers * 40);
  CHECK(f.backlog.questions(f.now, false).size() == kMarkers);
  for (int i = 0; i < kMarkers; ++i)
    f.see({f.backlog.questions(f.now, false).front()}, 1600 * kMicrosecond);
  CHECK(f.guessOf(kShape) > 30 * kMicrosecond);
  CHECK(f.guessOf(kShape) <= 40 * kMicrosecond);
  CHECK(f.backlog.empty());
  CHECK(f.backlog.remaining(f.now) == 0);
}

// It is only looked for at that moment, and may have ended long before.
TEST_CASE("work that found the GPU idle does not lengthen an estimate") {
  Fixture f;
  f.run(kShape, 1, 10 * kMicrosecond);
  f.now += 100 * kMicrosecond;
  f.run(kShape, 20, 600 * kMicrosecond);
  CHECK(f.guessOf(kShape) == 10 * kMicrosecond);
  f.now += 100 * kMicrosecond;
  f.run(kShape, 20, 100 * kMicrosecond);
  CHECK(f.guessOf(kShape) == 8'750);
}

bool refuses = false;

TEST_CASE("work of which the driver refuses a marker is not taken to have ended") {
  static bool capturing = false;
  worker::Driver driver = playedDriver();
  driver.cuEventRecord = [](CUevent, CUstream) {
    return refuses ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  };
  driver.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  worker::Durations durations;
  Backlog backlog{driver, nullptr, 0, durations};
  const CUstream named = reinterpret_cast<CUstream>(&idle);
  backlog.note({named});
  const auto ended = [&] {
    auto questions = backlog.streams();
    backlog.ask(questions, true);
    return questions.at(0).done;
  };
  idle = false;
  refuses = true;
  CHECK(backlog.aboutToCapture(named) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(!backlog.retire(named, true));
  CHECK(backlog.knows(named));
  capturing = true;
  backlog.submittedBesideCapture({named});
  CHECK(!ended());
  idle = true;
  CHECK(!ended());  // the stream cannot be asked
  capturing = false;
  CHECK(ended());
  CHECK(backlog.aboutToCapture(named) == CUDA_SUCCESS);
  CHECK(backlog.retire(named, true));
  CHECK(backlog.empty());
  refuses = false;
}

TEST_CASE("an answer that says nothing about the work is not taken for its end") {
  worker::Driver driver = playedDriver();
  worker::Durations durations;
  const auto ended = [&](auto query) {
    driver.cuStreamQuery = query;
    Backlog backlog{driver, nullptr, 0, durations};
    backlog.note({stream});
    auto questions = backlog.streams();
    backlog.ask(questions, false);
    return questions.at(0).done;
  };
  CHECK(!ended([](CUstream) { return CUDA_ERROR_NOT_READY; }));
  CHECK(!ended([](CUstream) { return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; }));
  CHECK(!ended([](CUstream) { return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; }));
  CHECK(ended([](CUstream) { return CUDA_ERROR_LAUNCH_FAILED; }));
  CHECK(ended([](CUstream) { return CUDA_SUCCESS; }));
}

int questionsAboutCaptures = 0;

TEST_CASE("the driver is asked about captures only while there is one") {
  worker::Driver driver = playedDriver();
  driver.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    ++questionsAboutCaptures;
    return *status = CU_STREAM_CAPTURE_STATUS_ACTIVE, CUDA_SUCCESS;
  };
  driver.cuStreamQuery = [](CUstream) { return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; };
  worker::Durations durations;
  Backlog backlog{driver, nullptr, 0, durations};
  backlog.note({stream});
  auto questions = backlog.streams();
  backlog.ask(questions, false);
  CHECK(questionsAboutCaptures == 0);
  backlog.ask(questions, true);
  CHECK(questionsAboutCaptures == 1);
  CHECK(questions.at(0).done);  // there was no work before the capture
}

}  // namespace
