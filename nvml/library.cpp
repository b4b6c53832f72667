#include "nvml/library.h"

#include <time.h>

#include <algorithm>
#include <cstring>

namespace nvml {

namespace {

/// gpu-proxy writes the page once a second.
constexpr long long kFreshMs = 250;

long long millisecondsNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

}  // namespace

Library& Library::instance() {
  static Library* const library = new Library;  // never destroyed: threads may outlive exit()
  return *library;
}

Return Library::start() {
  const std::lock_guard lock(mutex_);
  if (starts_ == 0) {
    std::optional<Page> page = awaitPage();
    if (!page || page->gpus.empty()) return kDriverNotLoaded;
    page_ = std::move(*page);
    readAt_ = millisecondsNow();
  }
  ++starts_;
  return kSuccess;
}

Return Library::stop() {
  const std::lock_guard lock(mutex_);
  if (starts_ == 0) return kUninitialized;
  --starts_;
  return kSuccess;
}

Return Library::initialized() {
  const std::lock_guard lock(mutex_);
  return starts_ > 0 ? kSuccess : kUninitialized;
}

/// Keeps the former page while gpu-proxy is away.
void Library::refresh() {
  const long long now = millisecondsNow();
  if (now - readAt_ < kFreshMs) return;
  readAt_ = now;
  std::optional<Page> page = readPage();
  if (page && !page->gpus.empty()) page_ = std::move(*page);
}

Return writeText(std::string_view text, char* out, unsigned length) {
  if (out == nullptr) return kInvalidArgument;
  if (length <= text.size()) return kInsufficientSize;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return kSuccess;
}

Return writeAnswer(const Answers& answers, const std::string& name,
                   std::initializer_list<std::pair<void*, std::size_t>> results) {
  const bool complete =
      std::all_of(results.begin(), results.end(), [](auto& each) { return each.first != nullptr; });
  if (!complete) return kInvalidArgument;
  const auto found = answers.find(name);
  if (found == answers.end()) return kNotSupported;
  const Answer& answer = found->second;
  if (answer.status != kSuccess) return answer.status;
  std::size_t place = 0;
  for (const auto& [out, bytes] : results) {
    if (place + bytes > answer.bytes.size()) return kUnknown;
    std::memcpy(out, answer.bytes.data() + place, bytes);
    place += bytes;
  }
  return kSuccess;
}

unsigned numberOf(const Answers& answers, const std::string& name) {
  unsigned number = 0;
  return writeAnswer(answers, name, {{&number, sizeof number}}) == kSuccess ? number : 0;
}

}  // namespace nvml
