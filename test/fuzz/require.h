// What a fuzzer holds to be true whatever it is fed; a crash is how libFuzzer is told that it is
// not.
#pragma once

#include <cstdlib>

#define REQUIRE(condition)          \
  do {                              \
    if (!(condition)) std::abort(); \
  } while (false)
