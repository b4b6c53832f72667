// Names of calls from the client, each reported once. The client is hostile: only names are
// accepted, and at most as many as no honest program reaches, because the report keeps every line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace worker {

class ReportedNames {
 public:
  static constexpr std::size_t kMost = 512;
  static constexpr std::size_t kLongestName = 128;

  /// Whether to report `name`: it is a valid name, and it is new.
  bool isNew(std::string_view name) {
    if (names_.size() >= kMost || name.empty() || name.size() > kLongestName ||
        !std::ranges::all_of(name, isOfName))
      return false;
    return names_.emplace(name).second;
  }

 private:
  /// C identifiers, and the space: cases of a call are named in words.
  static bool isOfName(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ' ';
  }

  std::unordered_set<std::string> names_;
};

}  // namespace worker
