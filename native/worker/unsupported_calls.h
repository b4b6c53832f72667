// Calls that the client says it refused. What a client says is worth little: anything that is no name is passed over, and so is whatever
// goes beyond a number that no program reaches, since the report keeps every line while the session lives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace worker {

class UnsupportedCalls {
 public:
  static constexpr std::size_t kMost = 512;
  static constexpr std::size_t kLongestName = 128;

  /// Whether `call` is to be reported: a name, and heard for the first time.
  bool isNews(std::string_view call) {
    if (names_.size() >= kMost || call.empty() || call.size() > kLongestName || !std::ranges::all_of(call, isOfNames)) return false;
    return names_.emplace(call).second;
  }

 private:
  /// Of the names of C, and the space: cases of a call are named in words.
  static bool isOfNames(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ' ';
  }

  std::unordered_set<std::string> names_;
};

}  // namespace worker
