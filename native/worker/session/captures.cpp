#include "native/worker/session/captures.h"

#include <algorithm>
#include <iterator>

#include "native/worker/driver/capture_status.h"

namespace worker {

bool Captures::includes(CUstream stream) const { return takesPartInCapture(driver_, stream); }

std::vector<std::uint64_t> Captures::graphs() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> graphs;
  for (const Capture& each : list_) graphs.push_back(each.graph);
  return graphs;
}

/// Replaces no capture: an equal one may be that of a thread or context that had the same address,
/// and other streams may still take part in it.
void Captures::began(const Capture& capture) {
  const std::lock_guard lock(mutex_);
  list_.push_back(capture);
  changed();
}

std::uint64_t Captures::ended(CUstream stream, const void* owner, bool succeeded,
                              CUcontext context) {
  const std::lock_guard lock(mutex_);
  const auto capture = take({stream, owner, context, 0, false});
  return capture && capture->made && !succeeded ? capture->graph : 0;
}

std::uint64_t Captures::destroyed(CUstream stream) {
  const std::lock_guard lock(mutex_);
  const auto capture = take({stream, nullptr, nullptr, 0, false});
  if (!capture) return 0;
  state_.fetch_or(kAbandoned);
  return capture->made ? capture->graph : 0;
}

std::vector<std::uint64_t> Captures::ended(CUcontext context) {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> graphs;
  const auto ended = [&](const Capture& each) {
    if (each.context == context && each.made) graphs.push_back(each.graph);
    return each.context == context;
  };
  if (std::erase_if(list_, ended) > 0) changed(), state_.fetch_or(kAbandoned);
  return graphs;
}

std::optional<Captures::Capture> Captures::take(const Capture& equal) {
  const auto found = std::find(list_.rbegin(), list_.rend(), equal);
  if (found == list_.rend()) return std::nullopt;
  const Capture capture = *found;
  list_.erase(std::next(found).base());
  changed();
  return capture;
}

void Captures::changed() {
  const std::uint64_t state = state_.load();
  state_.store(((state >> 32) + 1) << 32 | (state & (kTraced | kAbandoned)) | list_.size());
}

RelaxedCapture::RelaxedCapture(const Driver& driver, bool wanted)
    : driver_(driver), wanted_(wanted) {
  if (wanted_) driver_.cuThreadExchangeStreamCaptureMode(&mode_);
}

RelaxedCapture::RelaxedCapture(const Driver& driver, const Captures& captures)
    : RelaxedCapture(driver, captures.any()) {}

/// A driver that knows no captures lacks the call.
RelaxedCapture::RelaxedCapture(const Driver& driver)
    : RelaxedCapture(driver, driver.cuThreadExchangeStreamCaptureMode != nullptr) {}

RelaxedCapture::~RelaxedCapture() {
  if (wanted_) driver_.cuThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace worker
