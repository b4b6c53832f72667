#include "native/worker/gate/backlogs.h"

#include <algorithm>
#include <set>
#include <vector>

#include "native/worker/session/in_context.h"

namespace worker {

namespace {

/// Time in ns since the gate closed or work last finished. After that, late work is assumed to wait
/// for work that another, idle GPU has not received yet.
constexpr std::uint64_t kPeerIdle = 1'000'000;

}  // namespace

Backlog& Backlogs::of(CUcontext context) {
  auto& backlog = byContext_[context];
  if (backlog == nullptr) {
    CUdevice gpu = -1;
    const InContext current(driver_, context);
    driver_.cuCtxGetDevice(&gpu);
    backlog = std::make_unique<Backlog>(driver_, context, gpu, durations_);
    countGpus();
  }
  return *backlog;
}

void Backlogs::countGpus() {
  std::set<CUdevice> gpus;
  for (const auto& [context, backlog] : byContext_)
    if (context != nullptr) gpus.insert(backlog->gpu());  // null: what the driver will refuse
  gpus_ = gpus.size();
}

/// The backlog of the stream's context, to which all moves that others know of the stream: its
/// events are of that context, and end with it. Null if no backlog knows the stream.
Backlog* Backlogs::ownerOf(CUstream stream) {
  std::vector<Backlog*> known;
  for (auto& [context, backlog] : byContext_)
    if (backlog->knows(stream)) known.push_back(backlog.get());
  if (known.empty()) return nullptr;
  const InContext some(driver_, known.front()->context());
  CUcontext context = nullptr;
  if (driver_.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS) context = known.front()->context();
  const InContext own(driver_, context);
  if (own.status() != CUDA_SUCCESS) return nullptr;
  Backlog& owner = of(context);
  for (Backlog* other : known) {
    if (other == &owner) continue;
    other->forget(stream);
    owner.note({.stream = stream});
  }
  return &owner;
}

bool Backlogs::retire(CUstream stream, bool capturing) {
  Backlog* owner = ownerOf(stream);
  if (owner == nullptr) return forget(stream), true;
  const InContext current(driver_, owner->context());
  return owner->retire(stream, capturing);
}

/// The stream may be of a context that is not current, and may join a capture of any context.
CUresult Backlogs::aboutToCapture(CUstream stream) {
  if (stream > CU_STREAM_PER_THREAD) ownerOf(stream);
  for (auto& [context, backlog] : byContext_) {
    const InContext current(driver_, context);
    if (current.status() != CUDA_SUCCESS) continue;
    if (const CUresult status = backlog->aboutToCapture(stream); status != CUDA_SUCCESS)
      return status;
  }
  return CUDA_SUCCESS;
}

bool Backlogs::isBusy(CUcontext context, bool capturing) {
  const InContext current(driver_, context);
  if (current.status() != CUDA_SUCCESS) return false;
  for (auto& [other, backlog] : byContext_) {
    if (other == context) continue;
    for (const CUstream stream : backlog->namedStreams()) {
      CUcontext own = nullptr;
      if (driver_.cuStreamGetCtx(stream, &own) == CUDA_SUCCESS && own == context) ownerOf(stream);
    }
  }
  const auto found = byContext_.find(context);
  if (found == byContext_.end()) return false;
  auto questions = found->second->streams();
  found->second->ask(questions, capturing);
  return std::any_of(questions.begin(), questions.end(),
                     [](const auto& question) { return !question.done; });
}

void Backlogs::forget(CUstream stream) {
  for (auto& [context, backlog] : byContext_) backlog->forget(stream);
}

void Backlogs::forget(CUcontext context) {
  byContext_.erase(context);
  countGpus();
}

bool Backlogs::empty() const {
  return std::all_of(byContext_.begin(), byContext_.end(),
                     [](const auto& entry) { return entry.second->empty(); });
}

bool Backlogs::isBusy(CUdevice gpu) const {
  return std::any_of(byContext_.begin(), byContext_.end(), [&](const auto& entry) {
    return entry.second->gpu() == gpu && !entry.second->empty();
  });
}

bool Backlogs::isPartlyIdle() const {
  return !empty() && std::any_of(byContext_.begin(), byContext_.end(),
                                 [&](const auto& entry) { return !isBusy(entry.second->gpu()); });
}

std::uint32_t Backlogs::busyContexts() const {
  std::map<CUdevice, std::uint32_t> busy;
  std::uint32_t most = 0;
  for (const auto& [context, backlog] : byContext_) {
    if (!backlog->empty()) most = std::max(most, ++busy[backlog->gpu()]);
  }
  return most;
}

std::uint64_t Backlogs::longest(std::uint64_t now) const {
  std::uint64_t longest = 0;
  for (const auto& [context, backlog] : byContext_)
    longest = std::max(longest, backlog->remaining(now));
  return longest;
}

bool Backlogs::nearlyEmpty(std::uint64_t now, std::uint64_t remaining, std::uint64_t piece) const {
  return std::all_of(byContext_.begin(), byContext_.end(), [&](const auto& entry) {
    const Backlog& backlog = *entry.second;
    return backlog.empty() || (!backlog.isUncertain(now) && backlog.remaining(now) <= remaining &&
                               !backlog.hasLonger(piece));
  });
}

bool Backlogs::catchesUp(const Backlog& backlog, std::uint64_t shape, std::uint64_t limit,
                         std::uint64_t now) {
  const bool behind = std::any_of(byContext_.begin(), byContext_.end(), [&](const auto& entry) {
    return entry.second->gpu() != backlog.gpu() &&
           entry.second->submissions() > backlog.submissions();
  });
  return behind && (backlog.pieces() < kFew || backlog.remaining(now) + durationOf(shape) <= limit);
}

bool Backlogs::isAwaited(const Backlog& backlog, std::uint64_t closedSince,
                         std::uint64_t now) const {
  if (!isPartlyIdle()) return false;
  std::uint64_t since = closedSince;
  bool late = false;
  for (const auto& [context, each] : byContext_) {
    since = std::max(since, each->lastDone());
    late = late || each->isUncertain(now);
  }
  return now >= since + (late && !isBusy(backlog.gpu()) ? kPeerIdle : kStuck);
}

void Backlogs::levelAll() {
  for (auto& [context, backlog] : byContext_) backlog->level(0);
}

void Backlogs::levelFor(const Backlog& backlog) {
  const bool behind = !isBusy(backlog.gpu());
  for (auto& [context, each] : byContext_)
    each->level(behind && each->gpu() != backlog.gpu() ? 1 : 0);
}

}  // namespace worker
