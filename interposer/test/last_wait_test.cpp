#include "interposer/session/last_wait.h"

#include <doctest/doctest.h>

using interposer::LastWait;

TEST_CASE("a stream is done from the wait for it to the next call") {
  LastWait wait;
  CHECK(!wait.isOf(40, 5));
  wait.note(40, 5, 100);
  CHECK(wait.isOf(40, 5));
  CHECK(!wait.isOf(40, 6));
  CHECK(!wait.isOf(40, 4));
  CHECK(!wait.isOf(48, 5));
}

TEST_CASE("a wait replaces the one before") {
  LastWait wait;
  wait.note(40, 5, 100);
  wait.note(48, 6, 200);
  CHECK(wait.isOf(48, 6));
  CHECK(wait.at() == 200);
  CHECK(!wait.isOf(40, 5));
  CHECK(!wait.isOf(40, 6));
}
