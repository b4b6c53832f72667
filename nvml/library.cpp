#include "nvml/library.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstring>

namespace nvml {

namespace {

/// gpu-proxy writes the page once a second.
constexpr long long kFreshMs = 250;
/// A restart of gpu-proxy takes less, with the download of its image.
constexpr long long kStaleSeconds = 300;

long long millisecondsOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

long long millisecondsNow() { return millisecondsOf(CLOCK_MONOTONIC); }

}  // namespace

Library& Library::instance() {
  static Library* const library = new Library;  // never destroyed: threads may outlive exit()
  return *library;
}

/// A fork while another thread holds the lock would leave it locked in the child.
Library::Library() {
  pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                 [] { instance().mutex_.unlock(); });
}

/// Waits for the page without the lock, so that neither other threads nor fork() wait, too.
Return Library::start() {
  std::optional<Page> page;
  if (initialized() != kSuccess) {
    page = awaitPage();
    if (!page || page->gpus.empty()) return kDriverNotLoaded;
  }
  const std::lock_guard lock(mutex_);
  if (page) page_ = std::move(*page);
  if (page) readAt_ = millisecondsNow();
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

/// By the clock of the node, which the file's time has, too.
bool Library::isStale(const Page& page) {
  return millisecondsOf(CLOCK_REALTIME) / 1000 - page.readAt > kStaleSeconds;
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
