#include "native/worker/session/timeline.h"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "wire/wait.h"

namespace worker {

namespace {

using wire::monotonicNanoseconds;

/// Work that is measured at a time, and measured work that the client has not fetched. More is
/// lost.
constexpr std::size_t kMostPending = 16'384;
constexpr std::size_t kMostReady = 262'144;
/// Submissions between two looks at what has ended.
constexpr std::size_t kLookEvery = 64;
/// The driver tells times since the anchor as a float of milliseconds. After 4 s, it has steps of
/// 0.5 us, as fine as the GPU's clock.
constexpr std::uint64_t kLongestFromAnchor = 4'000'000'000;
/// An idle context gets a new anchor after so long, because two clocks drift.
constexpr std::uint64_t kAnchorEvery = 1'000'000'000;
/// Maximum wait in ns for work that has not ended, and for an anchor.
constexpr std::uint64_t kLongestWait = 3'000'000'000;
constexpr std::uint64_t kAnchorWait = 100'000'000;

void pause(long nanoseconds) {
  const timespec time{0, nanoseconds};
  nanosleep(&time, nullptr);
}

/// Makes a context current, and restores the one before.
class Inside {
 public:
  Inside(const Driver& driver, CUcontext context)
      : driver_(driver), pushed_(driver.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS) {}
  ~Inside() {
    CUcontext popped = nullptr;
    if (pushed_) driver_.cuCtxPopCurrent_v2(&popped);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const Driver& driver_;
  const bool pushed_;
};

}  // namespace

bool Timeline::takeEvent(Lane& lane, CUevent& event) const {
  if (lane.free.empty()) return driver_.cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
  event = lane.free.back();
  lane.free.pop_back();
  return true;
}

/// The lane of the current context; null if its clock cannot be read.
Timeline::Lane* Timeline::open(CUcontext context) {
  const auto [found, isNew] = lanes_.try_emplace(context);
  Lane& lane = found->second;
  if (!isNew) return lane.anchor != nullptr ? &lane : nullptr;
  driver_.cuCtxGetDevice(&lane.device);
  const auto create = [&] { return driver_.cuStreamCreate(&lane.stream, CU_STREAM_NON_BLOCKING); };
  if (streams_.make(context, &lane.stream, create) == CUDA_SUCCESS &&
      takeEvent(lane, lane.anchor) && anchor(lane))
    return &lane;
  lane.anchor = nullptr;
  return nullptr;
}

/// Records the anchor in an idle context, where it is passed at once.
bool Timeline::anchor(Lane& lane) const {
  const std::uint64_t before = monotonicNanoseconds();
  if (driver_.cuEventRecord(lane.anchor, lane.stream) != CUDA_SUCCESS) return false;
  CUresult status = CUDA_ERROR_NOT_READY;
  std::uint64_t now = before;
  while (status == CUDA_ERROR_NOT_READY && now < before + kAnchorWait) {
    status = driver_.cuEventQuery(lane.anchor);
    now = monotonicNanoseconds();
  }
  lane.anchoredAt = now;
  return status == CUDA_SUCCESS;
}

/// The driver may block while it records an event, so the lock is not held then.
Timeline::Work Timeline::begin(CUstream stream, const wire::TimelineItem& item) {
  Work work{.item = item};
  CUcontext context = nullptr;
  if (driver_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return work;
  {
    const std::lock_guard lock(mutex_);
    Lane* lane = open(context);
    if (lane == nullptr || lane->pending.size() >= kMostPending || !takeEvent(*lane, work.begin))
      return ++lost_, work;
    if (!takeEvent(*lane, work.end)) return lane->free.push_back(work.begin), ++lost_, work;
    work.item.device = static_cast<std::uint16_t>(lane->device);
    ++lane->inside;
  }
  work.context = context;
  if (driver_.cuEventRecord(work.begin, stream) == CUDA_SUCCESS) return work;
  end(stream, work, false);  // a stream of another context, or a fault
  work.context = nullptr;
  const std::lock_guard lock(mutex_);
  ++lost_;
  return work;
}

void Timeline::end(CUstream stream, const Work& work, bool submitted) {
  if (work.context == nullptr) return;
  const bool measured = submitted && driver_.cuEventRecord(work.end, stream) == CUDA_SUCCESS;
  const std::lock_guard lock(mutex_);
  const auto found = lanes_.find(work.context);
  if (found == lanes_.end()) return;  // ended, and its events with it
  Lane& lane = found->second;
  --lane.inside;
  if (!measured) {
    lane.free.insert(lane.free.end(), {work.begin, work.end});
    if (submitted) ++lost_;
    return;
  }
  lane.pending.push_back(work);
  if (lane.pending.size() % kLookEvery == 0) collect(lane);
}

/// Moves work that has ended to ready_. Streams run beside each other, so work behind an unfinished
/// piece may have ended too.
void Timeline::collect(Lane& lane) {
  std::vector<std::uint64_t> busy;
  std::erase_if(lane.pending, [&](Work& work) {
    if (std::ranges::find(busy, work.item.stream) != busy.end()) return false;
    const CUresult status = driver_.cuEventQuery(work.end);
    if (status == CUDA_ERROR_NOT_READY) return busy.push_back(work.item.stream), false;
    if (status == CUDA_SUCCESS && ready_.size() < kMostReady && measure(lane, work))
      ready_.push_back(work.item);
    else
      ++lost_;
    moveAnchor(lane, work);
    lane.free.insert(lane.free.end(), {work.begin, work.end});
    return true;
  });
}

bool Timeline::measure(Lane& lane, Work& work) const {
  float since = 0, took = 0;
  if (driver_.cuEventElapsedTime_v2(&since, lane.anchor, work.begin) != CUDA_SUCCESS ||
      driver_.cuEventElapsedTime_v2(&took, work.begin, work.end) != CUDA_SUCCESS)
    return false;
  const auto offset = static_cast<std::int64_t>(std::llround(static_cast<double>(since) * 1e6));
  work.item.begin = lane.anchoredAt + static_cast<std::uint64_t>(offset);
  work.item.end = work.item.begin + static_cast<std::uint64_t>(std::llround(took * 1e6));
  return true;
}

/// The event at the beginning of late work becomes the anchor.
void Timeline::moveAnchor(Lane& lane, Work& work) const {
  if (work.item.begin < lane.anchoredAt + kLongestFromAnchor) return;
  std::swap(lane.anchor, work.begin);
  lane.anchoredAt = work.item.begin;
}

void Timeline::collectAll(const CUcontext* only) {
  for (auto& [context, lane] : lanes_) {
    if (only != nullptr && context != *only) continue;
    const Inside inside(driver_, context);
    collect(lane);
    if (lane.pending.empty() && lane.inside == 0 && lane.anchor != nullptr &&
        monotonicNanoseconds() >= lane.anchoredAt + kAnchorEvery)
      anchor(lane);
  }
}

bool Timeline::hasPending(const CUcontext* only) const {
  return std::ranges::any_of(lanes_, [&](const auto& entry) {
    return (only == nullptr || entry.first == *only) && !entry.second.pending.empty();
  });
}

void Timeline::awaitAll(std::unique_lock<std::mutex>& lock, const CUcontext* only) {
  const std::uint64_t until = monotonicNanoseconds() + kLongestWait;
  for (collectAll(only); hasPending(only) && monotonicNanoseconds() < until; collectAll(only)) {
    lock.unlock();
    pause(1'000'000);
    lock.lock();
  }
}

void Timeline::forget(CUcontext context) {
  std::unique_lock lock(mutex_);
  const auto found = lanes_.find(context);
  if (found == lanes_.end()) return;
  awaitAll(lock, &context);
  const auto still = lanes_.find(context);
  if (still == lanes_.end()) return;
  lost_ += still->second.pending.size();
  lanes_.erase(still);
}

wire::Timeline Timeline::take(bool wait, std::size_t most, std::vector<wire::TimelineItem>& items) {
  std::unique_lock lock(mutex_);
  if (wait)
    awaitAll(lock, nullptr);
  else
    collectAll(nullptr);
  const std::size_t count = std::min(most, ready_.size());
  const auto end = ready_.begin() + static_cast<std::ptrdiff_t>(count);
  items.assign(ready_.begin(), end);
  ready_.erase(ready_.begin(), end);
  return {lost_, ready_.size()};
}

}  // namespace worker
