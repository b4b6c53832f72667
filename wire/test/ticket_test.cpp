// Tickets order many threads, awake or asleep. Ticket 0 is outside of the order; foreign and
// repeated tickets disturb nobody.
#include "wire/ticket.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <thread>
#include <vector>

#include "test/unit/waiting.h"

namespace wire {
namespace {

TEST_CASE("tickets count from 1") {
  TicketCounter counter;
  CHECK(counter.last() == 0);
  CHECK(counter.take() == 1);
  CHECK(counter.take() == 2);
  CHECK(counter.last() == 2);
}

// More threads than slots and processors; every 500th holds its turn until the others have fallen
// asleep.
TEST_CASE("threads take their turns in the order of tickets") {
  constexpr std::uint64_t kThreads = 20, kTurns = 4000;
  TicketTurn turn;
  std::uint64_t order = 0;  // guarded by the turn
  std::vector<std::thread> threads;
  std::atomic<pid_t> ids[kThreads]{};
  const auto othersSleep = [&](std::uint64_t thread) {
    for (std::uint64_t other = 0; other < kThreads; ++other)
      if (other != thread && !(ids[other] != 0 && unit::isAsleep(ids[other]))) return false;
    return true;
  };
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      ids[thread] = unit::threadId();
      for (std::uint64_t ticket = thread + 1; ticket <= kTurns; ticket += kThreads) {
        CHECK(turn.await(ticket));
        CHECK(++order == ticket);
        if (ticket % 500 == 0) CHECK(unit::comesTrue([&] { return othersSleep(thread); }));
        turn.pass(ticket);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(order == kTurns);
}

TEST_CASE("ticket 0 is outside of the order") {
  TicketTurn turn;
  CHECK(turn.await(0));
  turn.pass(0);
  CHECK(turn.await(1));
}

TEST_CASE("a turn that is passed out of order moves nothing") {
  TicketTurn turn;
  turn.pass(2);
  turn.pass(~std::uint64_t{0});
  CHECK(turn.await(1));
  turn.pass(1);
  turn.pass(1);
  CHECK(turn.await(2));
  turn.pass(2);
  turn.pass(1);
  CHECK(turn.await(3));
  turn.stop();
  CHECK(!turn.await(4));
}

TEST_CASE("a ticket is good once") {
  TicketTurn turn;
  CHECK(turn.await(1));
  CHECK(!turn.await(1));
  turn.pass(1);
  CHECK(!turn.await(1));
  CHECK(turn.await(2));
  turn.pass(2);
  CHECK(!turn.await(2));
  CHECK(!turn.await(1));
  CHECK(turn.await(3));
  CHECK(!turn.stopped());
}

TEST_CASE("of threads with the same ticket, one gets the turn") {
  constexpr std::uint64_t kThreads = 4, kTurns = 2000;
  TicketTurn turn;
  std::uint64_t held = 0;  // guarded by the turn
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (std::uint64_t ticket = 1; ticket <= kTurns; ++ticket) {
        if (!turn.await(ticket)) continue;
        ++held;
        turn.pass(ticket);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(held == kTurns);
}

TEST_CASE("stop() ends every wait") {
  TicketTurn turn;
  std::list<unit::Waiter> threads;
  for (const std::uint64_t ticket :
       {std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{18}, ~std::uint64_t{0}}) {
    threads.emplace_back([&, ticket] { CHECK(!turn.await(ticket)); });
    CHECK(threads.back().waits());
  }
  turn.stop();
  threads.clear();
  CHECK(!turn.await(1));
  CHECK(!turn.await(0));
}

}  // namespace
}  // namespace wire
