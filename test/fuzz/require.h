// An invariant for all inputs. A crash reports a violation to libFuzzer.
#pragma once

#include <cstdlib>

#define REQUIRE(condition)          \
  do {                              \
    if (!(condition)) std::abort(); \
  } while (false)
