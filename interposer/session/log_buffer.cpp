#include "interposer/session/log_buffer.h"

#include <algorithm>
#include <vector>

namespace interposer {

namespace {

constexpr std::string_view kLost = "The oldest messages of the log are missing\n";

}  // namespace

LogBuffer& LogBuffer::instance() {
  static LogBuffer* const only = new LogBuffer;
  return *only;
}

void LogBuffer::add(const std::string& message, CUlogLevel level) {
  std::vector<Callback> callbacks;
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message + '\n');
    bytes_ += messages_.back().size();
    for (; bytes_ > kBytes && messages_.size() > 1; ++first_) {
      bytes_ -= messages_.front().size();
      messages_.pop_front();
    }
    for (const auto& [number, callback] : callbacks_) callbacks.push_back(callback);
  }
  // Unlocked: a callback may dump the log.
  std::string copy = message;
  for (const Callback& callback : callbacks)
    callback.function(callback.data, level, copy.data(), copy.size());
}

CUlogsCallbackHandle LogBuffer::addCallback(CUlogsCallback function, void* data) {
  const std::lock_guard lock(mutex_);
  callbacks_[++lastCallback_] = {function, data};
  return reinterpret_cast<CUlogsCallbackHandle>(lastCallback_);
}

bool LogBuffer::removeCallback(CUlogsCallbackHandle handle) {
  const std::lock_guard lock(mutex_);
  return callbacks_.erase(reinterpret_cast<std::uintptr_t>(handle)) != 0;
}

std::uint32_t LogBuffer::end() const {
  const std::lock_guard lock(mutex_);
  return end_();
}

/// Numbers that were never given name the end.
std::size_t LogBuffer::indexOf(std::uint32_t number) const {
  if (number < first_) return 0;
  return std::min<std::size_t>(number - first_, messages_.size());
}

std::string LogBuffer::textFrom(std::uint32_t& begin) const {
  const std::lock_guard lock(mutex_);
  std::string text(begin < first_ ? kLost : "");
  for (std::size_t i = indexOf(begin); i < messages_.size(); ++i) text += messages_[i];
  begin = end_();
  return text;
}

std::string LogBuffer::latestFrom(std::uint32_t& begin, std::size_t most) const {
  const std::lock_guard lock(mutex_);
  const std::size_t from = indexOf(begin);
  const auto fitting = [&](std::size_t bytes) {
    std::size_t index = messages_.size();
    for (; index > from && messages_[index - 1].size() <= bytes; --index)
      bytes -= messages_[index - 1].size();
    return index;
  };
  std::size_t index = begin < first_ ? from + 1 : fitting(most);
  const bool lost = index > from;
  if (lost) index = fitting(most - std::min(most, kLost.size()));
  std::string text(lost && index < messages_.size() ? kLost : "");
  for (; index < messages_.size(); ++index) text += messages_[index];
  begin = end_();
  return text;
}

}  // namespace interposer
