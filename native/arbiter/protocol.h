// Parser for the lines of a control connection (README.md).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "native/arbiter/schedule.h"

namespace arbiter {

inline constexpr std::size_t kLongestLine = 16'384;
/// Limits of a window in microseconds.
inline constexpr std::int64_t kLeastWindow = 500;
inline constexpr std::int64_t kMostWindow = 100'000;
/// Limit of an overrun in seconds.
inline constexpr std::int64_t kMostOverrun = 86'400;

struct Command {
  enum class Kind {
    begin,
    commit,
    allocation,
    latency,
    worker,
    gone,
    remove,
    window,
    overrun,
    guarantee,
    figures
  };
  Kind kind = Kind::figures;
  std::string id;  ///< of an allocation
  pid_t pid = 0;
  std::int64_t microseconds = 0;  ///< of a window
  std::int64_t seconds = 0;       ///< of an overrun; 0: no limit
  int percent = 0;                ///< of the guarantee
  Terms terms;
};

/// Parses one line without its newline. Returns an error message without a full stop, or an empty
/// string.
std::string parse(std::string_view line, Command& command);

}  // namespace arbiter
