// The lines of a control connection, as README.md describes them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "native/arbiter/schedule.h"

namespace arbiter {

inline constexpr std::size_t kLongestLine = 16'384;
/// Microseconds.
inline constexpr std::int64_t kLeastWindow = 500;
inline constexpr std::int64_t kMostWindow = 100'000;

struct Command {
  enum class Kind { begin, commit, allocation, worker, gone, remove, window, figures };
  Kind kind = Kind::figures;
  std::string id;  ///< of an allocation
  pid_t pid = 0;
  std::int64_t microseconds = 0;  ///< of a window
  Terms terms;
};

/// Reads one line without its end. Returns a sentence, without a full stop, when it is none of the protocol's.
std::string parse(std::string_view line, Command& command);

}  // namespace arbiter
