#include "interposer/session/submission_order.h"

#include <doctest/doctest.h>

#include <thread>

using interposer::SubmissionOrder;
using wire::kTicket;

TEST_CASE("calls count as changes, and queries do not") {
  SubmissionOrder order;
  const std::uint64_t before = order.changes();
  CHECK(order.take().changes == before + kTicket);
  CHECK(order.takeQuery().changes == before + kTicket);
  CHECK(order.changes() == before + kTicket);
  CHECK(order.takeShared().changes == before + kTicket + 1);
  CHECK(order.take().changes == before + 2 * kTicket + 1);
  CHECK(order.changes() == before + 2 * kTicket + 1);
}

TEST_CASE("tickets say which calls precede, queries too") {
  SubmissionOrder order;
  const std::uint64_t first = order.take().ticket;
  CHECK(order.takeQuery().ticket == first + kTicket);
  CHECK(order.takeShared().ticket == first + 2 * kTicket);
  CHECK(order.take().ticket == first + 2 * kTicket + 1);
}

TEST_CASE("a place right behind a change is given if no other call has come") {
  SubmissionOrder order;
  const std::uint64_t changes = order.take().changes;
  order.takeQuery();
  const auto place = order.takeBehind(changes);
  REQUIRE(place);
  CHECK(place->changes == changes + kTicket);
  CHECK(order.take().ticket == place->ticket + kTicket);
  CHECK(!order.takeBehind(changes));
  CHECK(!order.takeBehind(place->changes));
  CHECK(order.takeBehind(order.takeShared().changes));
}

TEST_CASE("no other call gets the place right behind a change as well") {
  SubmissionOrder order;
  std::atomic<bool> ends{false};
  std::uint64_t tickets = 0, ofOthers = 0;
  std::atomic<int> others{0};
  std::thread submitting([&] {
    while (!ends) ofOthers += order.take().ticket / kTicket, ++others;
  });
  for (int taken = 0; taken < 1'000'000 || others < 10'000'000;) {
    const auto place = order.takeBehind(order.changes());
    if (place) tickets += place->ticket / kTicket, ++taken;
  }
  ends = true;
  submitting.join();
  const std::uint64_t all = order.take().ticket / kTicket - 1;
  CHECK(tickets + ofOthers == all * (all + 1) / 2);
}

TEST_CASE("no change is missed while another thread queries") {
  SubmissionOrder order;
  std::uint64_t changes = order.changes();
  std::atomic<bool> ends{false};
  std::atomic<int> queries{0};
  std::thread querying([&] {
    while (!ends) order.takeQuery(), ++queries;
  });
  int tooHigh = 0, tooLow = 0;
  const auto beyond = [&](std::uint64_t count) {
    return static_cast<std::int64_t>(count - changes);  // those of places wrap below 0
  };
  for (int i = 0; i < 1'000'000 || queries < 3'000'000; ++i) {
    const std::uint64_t ofPlace = order.take().changes;
    changes += kTicket;
    tooHigh += beyond(ofPlace) > 0;
    tooLow += beyond(order.changes()) < 0;
  }
  ends = true;
  querying.join();
  CHECK(tooHigh == 0);
  CHECK(tooLow == 0);
}
