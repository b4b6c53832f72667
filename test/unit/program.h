// What a C++ test program needs beside doctest: arguments, a reason for being skipped, checks in a
// forked child. main() is in main.cpp; add_unit_tests() of toolchain/cmake/unit-tests.cmake links
// it.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <iostream>
#include <string_view>

namespace unit {

/// A word of the command line that is no option of doctest; ends the program with a sentence that
/// says `what` is missing if there are fewer of them.
const char* argument(std::size_t index, std::string_view what);

/// The same for a word that may be missing; null then.
const char* optionalArgument(std::size_t index);

/// The test case cannot run on this machine and returns. If no other one fails, the program exits
/// with status 77, which ctest reports as skipped.
void skip(std::string_view reason);

/// The checks of this process that have failed so far.
int failedChecks();

/// Runs `body` in a forked child. A check that fails there is printed there, and fails the test
/// case here.
template <class Body>
void inChild(Body body) {
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      const int before = failedChecks();
      body();
      status = failedChecks() == before ? 0 : 1;
    } catch (...) {  // of REQUIRE, which has printed what was false
    }
    std::cout.flush();
    _exit(status);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace unit
