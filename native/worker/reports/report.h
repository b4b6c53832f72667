// Events of a session for the proxy: one JSON object per line, in the file or pipe that it opened
// (file descriptor 4).
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace worker {

class JsonObject {
 public:
  JsonObject& add(std::string_view name, std::string_view text);
  JsonObject& add(std::string_view name, std::uint64_t number);
  JsonObject& add(std::string_view name, const JsonObject& object);
  JsonObject& add(std::string_view name, std::span<const JsonObject> list);
  std::string text() const { return '{' + members_ + '}'; }

 private:
  void addName(std::string_view name);
  std::string members_;
};

class Report {
 public:
  explicit Report(int file) : file_(file) {}

  /// Writes `line` with its "event" in front. Does nothing if the proxy is gone.
  void event(std::string_view name, const JsonObject& line);

 private:
  int file_;
  std::mutex mutex_;
};

}  // namespace worker
