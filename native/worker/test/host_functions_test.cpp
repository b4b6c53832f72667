// Host functions of graphs, and how many of them a program may have.
#include "native/worker/session/host_functions.h"

#include <doctest/doctest.h>

namespace {

using worker::HostFunction;
using worker::HostFunctions;
using worker::Session;

/// Sessions are only told apart.
Session& session(int number) {
  static char places[8];
  return reinterpret_cast<Session&>(places[number]);
}

constexpr std::uint64_t kFunction = 0x7fff12345678;

TEST_CASE("the driver's argument tells session, function and argument") {
  HostFunctions functions;
  for (int number = 0; number < 2; ++number) {
    for (const std::uint64_t userData :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x7fffffffffff}, std::uint64_t{1} << 48,
          ~std::uint64_t{0}}) {
      void* argument = functions.argumentFor(session(number), kFunction, userData);
      CHECK(argument != nullptr);
      CHECK(functions.argumentFor(session(number), kFunction, userData) == argument);
      const HostFunction found = functions.find(argument);
      CHECK(found.session == &session(number));
      CHECK(found.function == kFunction);
      CHECK(found.userData == userData);
    }
  }
}

// As pageable copies make one each.
TEST_CASE("a program that captures again and again may have any number of arguments") {
  HostFunctions functions;
  for (std::uint64_t userData = 0; userData < 1'000'000; ++userData)
    if (functions.argumentFor(session(0), kFunction, userData << 4) == nullptr) FAIL("refused");
}

TEST_CASE("a program may not have any number of functions") {
  HostFunctions functions;
  std::uint64_t last = 0;
  while (last < 1'000'000 && functions.argumentFor(session(0), last, 0) != nullptr) ++last;
  CHECK(last == 65'535);
  CHECK(functions.argumentFor(session(0), 0, ~std::uint64_t{0}) == nullptr);
  CHECK(functions.find(functions.argumentFor(session(0), 0, 7)).userData == 7);
}

}  // namespace
