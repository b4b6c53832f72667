// The timeline of work with the simulated driver.
#include "native/worker/session/timeline.h"

#include <dlfcn.h>

#include "test/unit/program.h"
#include "wire/wait.h"

namespace {

using worker::Timeline;

worker::Driver driver;
worker::Quota quota;
worker::StreamAccount streams(driver, quota, 0);

/// A context of its own, current while it lives, with memory to set.
struct WithContext {
  WithContext() {
    static const bool loaded = [] {
      const char* path = unit::argument(0, "the path of the simulated driver");
      return worker::load(dlopen(path, RTLD_NOW | RTLD_LOCAL), driver) &&
             driver.cuInit(0) == CUDA_SUCCESS;
    }();
    REQUIRE(loaded);
    REQUIRE(driver.cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    REQUIRE(driver.cuMemAlloc_v2(&memory, kBytes) == CUDA_SUCCESS);
  }
  ~WithContext() { driver.cuCtxDestroy_v2(context); }

  void set(Timeline& timeline, CUstream stream, std::uint64_t code, bool submits = true) const {
    const Timeline::Work work = timeline.begin(stream, {.code = code});
    if (submits) driver.cuMemsetD8Async(memory, 1, kBytes, stream);
    timeline.end(stream, work, submits);
  }

  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
};

}  // namespace

TEST_CASE_FIXTURE(WithContext, "work has its times on the host's clock, in the stream's order") {
  Timeline timeline(driver, streams);
  const std::uint64_t before = wire::monotonicNanoseconds();
  for (std::uint64_t code = 1; code <= 5; ++code) set(timeline, nullptr, code);
  std::vector<wire::TimelineItem> items;
  const wire::Timeline answer = timeline.take(true, 10, items);
  const std::uint64_t after = wire::monotonicNanoseconds();
  CHECK(answer.lost == 0);
  CHECK(answer.left == 0);
  REQUIRE(items.size() == 5);
  std::uint64_t last = before;
  for (std::uint64_t i = 0; i < 5; ++i) {
    CHECK(items[i].code == i + 1);
    CHECK(items[i].begin >= last);
    CHECK(items[i].end >= items[i].begin);
    last = items[i].end;
  }
  CHECK(last <= after);
}

TEST_CASE_FIXTURE(WithContext, "what does not fit an answer comes with the next one") {
  Timeline timeline(driver, streams);
  for (int i = 0; i < 3; ++i) set(timeline, nullptr, 0);
  std::vector<wire::TimelineItem> items;
  CHECK(timeline.take(true, 2, items).left == 1);
  CHECK(items.size() == 2);
  CHECK(timeline.take(true, 2, items).left == 0);
  CHECK(items.size() == 1);
  CHECK(timeline.take(true, 2, items).left == 0);
  CHECK(items.empty());
}

TEST_CASE_FIXTURE(WithContext, "work that the driver refused did not run") {
  Timeline timeline(driver, streams);
  set(timeline, nullptr, 1, false);
  std::vector<wire::TimelineItem> items;
  CHECK(timeline.take(true, 10, items).lost == 0);
  CHECK(items.empty());
}

TEST_CASE_FIXTURE(WithContext, "the work of a context that ends is kept") {
  Timeline timeline(driver, streams);
  std::vector<wire::TimelineItem> items;
  {
    const WithContext other;
    other.set(timeline, nullptr, 7);
    timeline.forget(other.context);
  }
  REQUIRE(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  set(timeline, nullptr, 8);
  CHECK(timeline.take(true, 10, items).lost == 0);
  REQUIRE(items.size() == 2);
  CHECK(items[0].code == 7);
  CHECK(items[1].code == 8);
}

TEST_CASE_FIXTURE(WithContext, "work in a stream of another context is counted as lost") {
  Timeline timeline(driver, streams);
  CUstream stream = nullptr;
  REQUIRE(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const WithContext other;
  other.set(timeline, stream, 1);
  std::vector<wire::TimelineItem> items;
  CHECK(timeline.take(true, 10, items).lost == 1);
  CHECK(items.empty());
  CHECK(driver.cuStreamSynchronize(stream) == CUDA_SUCCESS);  // before the memory ends
}

TEST_CASE_FIXTURE(WithContext, "an end that comes after its context's is ignored") {
  Timeline timeline(driver, streams);
  Timeline::Work work;
  {
    const WithContext other;
    work = timeline.begin(nullptr, {});
    timeline.forget(other.context);
  }
  timeline.end(nullptr, work, false);
  std::vector<wire::TimelineItem> items;
  timeline.take(false, 10, items);
  CHECK(items.empty());
}

TEST_CASE_FIXTURE(WithContext, "without a context nothing is measured") {
  Timeline timeline(driver, streams);
  REQUIRE(driver.cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(timeline.begin(nullptr, {}).context == nullptr);
}
