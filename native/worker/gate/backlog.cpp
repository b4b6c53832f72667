#include "native/worker/gate/backlog.h"

#include <algorithm>
#include <utility>

#include "native/worker/driver/capture_status.h"

namespace worker {

namespace {

/// Work between two markers, in ns. Recording a marker costs 1.2 us (H200), which is 0.3 % of that.
constexpr std::uint64_t kMarkedWork = 400'000;
constexpr std::size_t kMostUnmarked = 64;
/// Estimate in ns for work of an unknown shape, until its marker is passed.
constexpr std::uint64_t kFirstGuess = 50'000;
/// A stream that was not used for so long, in ns, is queried even without a marker.
constexpr std::uint64_t kQuiet = 50'000;
/// Work that exceeds its estimate by so much, in ns, makes the estimate uncertain.
constexpr std::uint64_t kLate = 100'000;

/// After a fault of the context, and without a stream or a context, no work runs. A detached stream
/// is one of a green context, whose end waits for its work.
bool saysEnded(CUresult answer) { return answer != CUDA_ERROR_NOT_READY && !isOfCapture(answer); }

}  // namespace

/// Does not destroy the events, because they end with their context.
Backlog::~Backlog() { forgetAll(); }

Backlog::Lane* Backlog::find(Place place) {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(),
                                  [&](const Lane& lane) { return lane.place == place; });
  return found == lanes_.end() ? nullptr : &*found;
}

Backlog::Lane& Backlog::laneOf(Place place) {
  if (Lane* lane = find(place)) return *lane;
  return lanes_.emplace_back(Lane{.place = place});
}

void Backlog::note(Place place) { laneOf(place).unmeasured = true; }

void Backlog::submittedBesideCapture(Place place) { recordBefore(laneOf(place), place.stream); }

CUresult Backlog::recordBefore(Lane& lane, CUstream behind) {
  const bool taken = lane.before != nullptr || take(lane.before);
  const CUresult status =
      taken ? driver_.cuEventRecord(lane.before, behind) : CUDA_ERROR_OUT_OF_MEMORY;
  lane.lost = status != CUDA_SUCCESS;
  return status;
}

void Backlog::submitted(Place place, std::uint64_t shape, std::uint64_t now) {
  ++submissions_;
  Lane& lane = laneOf(place);
  const Durations::Index index = durations_.find(shape);
  const bool known = durations_.at(index) != Durations::kUnknown;
  if (lane.work.empty()) lane.first = now;
  lane.last = now;
  const std::uint64_t guess = known ? durations_.at(index) : kFirstGuess;
  lane.guess += guess;
  guess_ += guess;
  lane.work.push_back(index);
  if (!known || lane.guess >= kMarkedWork || lane.work.size() >= kMostUnmarked)
    mark(lane, known ? 0 : 1);
}

bool Backlog::take(CUevent& event) {
  if (free_.empty()) return driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
  event = free_.back();
  free_.pop_back();
  return true;
}

/// The first unknown piece of work in a lane gets a marker at once, so `unknown` is at most 1.
void Backlog::mark(Lane& lane, std::size_t unknown) {
  Marker marker{lane.place, nullptr, lane.guess, std::move(lane.work), lane.first, unknown};
  lane.work.clear();
  lane.guess = 0;
  if (take(marker.event)) {
    if (driver_.cuEventRecord(marker.event, lane.place.stream) == CUDA_SUCCESS) {
      unknown_ += unknown;
      return markers_.push_back(std::move(marker));
    }
    free_.push_back(marker.event);
  }
  guess_ -= marker.guess;
  lane.unmeasured = true;  // a stream of another context, or a fault: query the stream instead
}

std::vector<Backlog::Question> Backlog::questions(std::uint64_t now, bool all) const {
  std::vector<Question> questions = ofRetired();
  for (const Marker& marker : markers_)
    questions.push_back({.place = marker.place, .marker = marker.event});
  for (const Lane& lane : lanes_) {
    const bool quiet = all || now - lane.last >= kQuiet;
    if ((lane.unmeasured || !lane.work.empty()) && quiet) questions.push_back(about(lane));
  }
  return questions;
}

Backlog::Question Backlog::about(const Lane& lane) const {
  return {.place = lane.place, .before = lane.before, .lost = lane.lost, .last = lane.last};
}

/// Each has a place of its own, that of no stream.
std::vector<Backlog::Question> Backlog::ofRetired() const {
  std::vector<Question> questions;
  for (const CUevent event : retired_)
    questions.push_back({.place = {.owner = event}, .marker = event, .retired = true});
  return questions;
}

std::vector<Backlog::Question> Backlog::streams() const {
  std::vector<Question> questions = ofRetired();
  for (const Lane& lane : lanes_) questions.push_back(about(lane));
  return questions;
}

/// Skips queries behind unfinished work of the same stream, because streams run in order.
void Backlog::ask(std::vector<Question>& questions, bool capturing) const {
  std::vector<Place> busy;
  for (Question& question : questions) {
    if (std::find(busy.begin(), busy.end(), question.place) != busy.end()) continue;
    question.done = hasEnded(question, capturing);
    if (!question.done) busy.push_back(question.place);
  }
}

/// Another thread's per-thread stream cannot be queried from here. The legacy stream waits for it,
/// so that one is queried instead.
bool Backlog::hasEnded(const Question& question, bool capturing) const {
  if (question.marker != nullptr) return saysEnded(driver_.cuEventQuery(question.marker));
  const CUstream own = question.place.stream;
  const CUstream stream = own == CU_STREAM_PER_THREAD ? CU_STREAM_LEGACY : own;
  if (!capturing || !captures(stream)) return isIdle(stream);
  if (question.lost) return false;
  return question.before == nullptr || saysEnded(driver_.cuEventQuery(question.before));
}

bool Backlog::isIdle(CUstream stream) const { return saysEnded(driver_.cuStreamQuery(stream)); }

/// A query of a stream that captures would invalidate the capture.
bool Backlog::captures(CUstream stream) const { return takesPartInCapture(driver_, stream); }

/// A lane whose stream is idle needs no marker, so its capture is never refused.
CUresult Backlog::aboutToCapture(CUstream stream) {
  for (Lane& lane : lanes_) {
    const bool isDefault = lane.place.stream <= CU_STREAM_PER_THREAD;
    if (lane.place.stream != stream && !isDefault) continue;
    const CUstream behind = isDefault ? CU_STREAM_LEGACY : stream;
    if (captures(behind)) continue;
    if (isIdle(behind)) {
      if (lane.before != nullptr) free_.push_back(std::exchange(lane.before, nullptr));
      lane.lost = false;
    } else if (const CUresult status = recordBefore(lane, behind); status != CUDA_SUCCESS) {
      return status;
    }
  }
  return CUDA_SUCCESS;
}

/// Markers recorded during the queries come after those that were queried.
void Backlog::learn(const std::vector<Question>& answers, std::uint64_t now) {
  settle(answers);
  std::uint64_t guess = 0, first = now;
  std::vector<Durations::Index> work;
  const auto finish = [&](std::uint64_t part, const std::vector<Durations::Index>& parts,
                          std::uint64_t since) {
    guess += part;
    first = std::min(first, since);
    work.insert(work.end(), parts.begin(), parts.end());
  };
  std::size_t place = 0;
  for (const Question& answer : answers) {
    if (answer.retired) continue;
    if (answer.marker != nullptr && !answer.done) ++place;
    if (answer.marker != nullptr && answer.done) {
      const auto marker = markers_.begin() + static_cast<std::ptrdiff_t>(place);
      finish(marker->guess, marker->work, marker->first);
      unknown_ -= marker->unknown;
      free_.push_back(marker->event);
      markers_.erase(marker);
    }
    Lane* lane = answer.marker == nullptr && answer.done ? find(answer.place) : nullptr;
    if (lane == nullptr || lane->last != answer.last) continue;
    finish(lane->guess, lane->work, lane->first);
    lane->unmeasured = false;
    lane->guess = 0;
    lane->work.clear();
  }
  guess_ -= guess;
  if (!work.empty()) done(std::move(work), first, now);
}

void Backlog::settle(const std::vector<Question>& answers) {
  for (const Question& answer : answers) {
    if (answer.retired && answer.done && std::erase(retired_, answer.marker) > 0)
      free_.push_back(answer.marker);
  }
}

/// Work that followed other work took the time since that was done. Work that found the GPU idle
/// took less than measured, because it was polled late.
void Backlog::done(std::vector<Durations::Index> work, std::uint64_t first, std::uint64_t now) {
  const bool followed = first <= lastDone_;
  const auto took = static_cast<double>(now - std::max(first, lastDone_));
  lastDone_ = now;
  double known = 0, unknown = 0;
  for (const Durations::Index index : work)
    (durations_.at(index) == Durations::kUnknown ? unknown : known) +=
        std::max(1u, durations_.at(index));
  if (unknown == 0 && !followed && took >= known) return;
  std::sort(work.begin(), work.end());
  work.erase(std::unique(work.begin(), work.end()), work.end());
  for (const Durations::Index index : work) {
    if (unknown == 0)
      durations_.correct(index, took / known);
    else if (durations_.at(index) == Durations::kUnknown)
      durations_.set(index, (took - known) / unknown);
  }
}

bool Backlog::empty() const {
  return markers_.empty() && retired_.empty() &&
         std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return !lane.unmeasured && lane.work.empty(); });
}

std::size_t Backlog::pieces() const {
  std::size_t count = 0;
  for (const Marker& marker : markers_) count += marker.work.size();
  for (const Lane& lane : lanes_) count += lane.work.size();
  return count;
}

Backlog::Head Backlog::head(std::uint64_t now) const {
  Head head{0, now};
  if (!markers_.empty()) head = {markers_.front().guess, markers_.front().first};
  for (const Lane& lane : lanes_) {
    if (!lane.work.empty() && lane.first < head.since) head = {lane.guess, lane.first};
  }
  head.since = std::min(now, std::max(head.since, lastDone_));
  return head;
}

std::uint64_t Backlog::remaining(std::uint64_t now) const {
  const Head oldest = head(now);
  return guess_ - std::min({guess_, oldest.guess, now - oldest.since});
}

bool Backlog::hasLonger(std::uint64_t nanoseconds) const {
  const auto longer = [&](const auto& some) {
    return std::any_of(some.work.begin(), some.work.end(),
                       [&](Durations::Index index) { return durations_.at(index) > nanoseconds; });
  };
  return std::any_of(markers_.begin(), markers_.end(), longer) ||
         std::any_of(lanes_.begin(), lanes_.end(), longer);
}

bool Backlog::isUncertain(std::uint64_t now) const {
  const Head oldest = head(now);
  const bool unmeasured =
      std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.unmeasured; });
  return unmeasured || !retired_.empty() || unknown_ > 0 ||
         now - oldest.since > oldest.guess + kLate;
}

void Backlog::stopMeasuring() {
  for (const Marker& marker : markers_) free_.push_back(marker.event);
  markers_.clear();
  for (Lane& lane : lanes_)
    lane = Lane{.place = lane.place, .last = lane.last, .before = lane.before, .lost = lane.lost};
  guess_ = unknown_ = 0;
}

void Backlog::startMeasuring() {
  for (Lane& lane : lanes_) lane.unmeasured = true;
}

bool Backlog::knows(CUstream stream) const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [&](const Lane& lane) { return lane.place.stream == stream; });
}

std::vector<CUstream> Backlog::namedStreams() const {
  std::vector<CUstream> streams;
  for (const Lane& lane : lanes_)
    if (lane.place.stream > CU_STREAM_PER_THREAD) streams.push_back(lane.place.stream);
  return streams;
}

/// While the gate is open, nobody else removes the markers that were passed.
bool Backlog::retire(CUstream stream, bool capturing) {
  std::vector<Question> earlier = ofRetired();
  ask(earlier, false);
  settle(earlier);
  Lane* lane = find({.stream = stream});
  if (lane == nullptr) return true;
  if (capturing && captures(stream)) {
    if (lane->before != nullptr) retired_.push_back(std::exchange(lane->before, nullptr));
  } else if (!isIdle(stream)) {
    if (!lane->work.empty()) mark(*lane, 0);
    CUevent event = nullptr;
    if (!take(event)) return false;
    const bool recorded = driver_.cuEventRecord(event, stream) == CUDA_SUCCESS;
    (recorded ? retired_ : free_).push_back(event);
    if (!recorded) return false;
  }
  forget(stream);
  return true;
}

void Backlog::forgetRetired() {
  free_.insert(free_.end(), retired_.begin(), retired_.end());
  retired_.clear();
}

void Backlog::forget(CUstream stream) {
  std::erase_if(lanes_, [&](const Lane& lane) {
    if (lane.place.stream != stream) return false;
    guess_ -= lane.guess;
    if (lane.before != nullptr) free_.push_back(lane.before);
    return true;
  });
}

void Backlog::forgetAll() {
  lanes_.clear();
  markers_.clear();
  retired_.clear();
  free_.clear();
  guess_ = unknown_ = 0;
}

}  // namespace worker
