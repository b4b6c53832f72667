// The whole test framework: CHECK says what was false and goes on; checkedResult() is main's exit
// status.
#pragma once

#include <cstdio>

namespace wire::test {

inline int failures = 0;

inline void check(bool holds, const char* text, const char* file, int line) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
}

inline int checkedResult() { return failures == 0 ? 0 : 1; }

/// The exit status of a test that the machine cannot run (ctest's SKIP_RETURN_CODE).
inline constexpr int kSkipped = 77;

}  // namespace wire::test

#define CHECK(condition) \
  ::wire::test::check(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
