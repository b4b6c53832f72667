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

/// The ticket behind so many others, none of which is shared.
constexpr std::uint64_t ticket(std::uint64_t number) { return number * kTicket; }

TEST_CASE("a ticket is the sum of those before it") {
  TicketCounter counter;
  CHECK(counter.next() == ticket(1));
  CHECK(counter.take() == ticket(1));
  CHECK(counter.takeShared() == ticket(2));
  CHECK(counter.takeShared() == ticket(2) + 1);
  CHECK(counter.take() == ticket(2) + 2);
  CHECK(counter.next() == ticket(3) + 2);
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
      for (std::uint64_t number = thread + 1; number <= kTurns; number += kThreads) {
        CHECK(turn.await(ticket(number)));
        CHECK(++order == number);
        if (number % 500 == 0) CHECK(unit::comesTrue([&] { return othersSleep(thread); }));
        turn.pass(ticket(number));
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
  CHECK(turn.await(ticket(1)));
}

TEST_CASE("a turn that is passed out of order moves nothing") {
  TicketTurn turn;
  turn.pass(ticket(2));
  turn.pass(~std::uint64_t{0});
  CHECK(turn.await(ticket(1)));
  turn.pass(ticket(1));
  turn.pass(ticket(1));
  CHECK(turn.await(ticket(2)));
  turn.pass(ticket(2));
  turn.pass(ticket(1));
  CHECK(turn.await(ticket(3)));
  turn.stop();
  CHECK(!turn.await(ticket(4)));
}

TEST_CASE("a ticket is good once") {
  TicketTurn turn;
  CHECK(turn.await(ticket(1)));
  CHECK(!turn.await(ticket(1)));
  turn.pass(ticket(1));
  CHECK(!turn.await(ticket(1)));
  CHECK(turn.await(ticket(2)));
  turn.pass(ticket(2));
  CHECK(!turn.await(ticket(2)));
  CHECK(!turn.await(ticket(1)));
  CHECK(turn.await(ticket(3)));
  CHECK(!turn.stopped());
}

TEST_CASE("of threads with the same ticket, one gets the turn") {
  constexpr std::uint64_t kThreads = 4, kTurns = 2000;
  TicketTurn turn;
  std::uint64_t held = 0;  // guarded by the turn
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (std::uint64_t number = 1; number <= kTurns; ++number) {
        if (!turn.await(ticket(number))) continue;
        ++held;
        turn.pass(ticket(number));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(held == kTurns);
}

TEST_CASE("shared tickets are served beside each other, and others alone") {
  TicketTurn turn;
  CHECK(turn.await(ticket(1) + 1, true));
  CHECK(turn.await(ticket(1), true));
  std::atomic<bool> alone{false};
  unit::Waiter next([&] {
    CHECK(turn.await(ticket(1) + 2));
    alone = true;
  });
  CHECK(next.waits());
  turn.pass(ticket(1), true);
  CHECK(next.waits());
  CHECK(!alone);
  turn.pass(ticket(1) + 1, true);
  CHECK(unit::comesTrue([&] { return alone.load(); }));
  unit::Waiter later([&] { CHECK(turn.await(ticket(2) + 3, true)); });
  unit::Waiter sooner([&] { CHECK(turn.await(ticket(2) + 2, true)); });
  CHECK(later.waits());
  CHECK(sooner.waits());
  turn.pass(ticket(1) + 2);
}

TEST_CASE("a hostile client's shared ticket finds nobody who must be alone") {
  TicketTurn turn;
  CHECK(turn.await(ticket(1)));
  CHECK(!turn.await(ticket(1), true));
  TicketTurn other;
  CHECK(other.await(ticket(1), true));
  other.pass(ticket(1), true);
  CHECK(other.await(ticket(1), true));
  CHECK(!other.await(ticket(1) + 1));
  CHECK(!other.await(ticket(1)));
  other.pass(ticket(1), true);
  CHECK(!other.await(ticket(1) + 1));
}

TEST_CASE("shared tickets may be passed together, and keep away others until then") {
  TicketTurn turn;
  CHECK(turn.await(ticket(1), true));
  CHECK(turn.await(ticket(1) + 2, true));
  turn.pass(ticket(1) + 2, true);
  unit::Waiter alone([&] {
    CHECK(turn.await(ticket(1) + 4));
    turn.pass(ticket(1) + 4);
    CHECK(turn.await(ticket(2) + 4, true));
  });
  CHECK(alone.waits());
  TicketTurn hostile;
  CHECK(hostile.await(ticket(1), true));
  CHECK(!hostile.await(ticket(1)));
  hostile.passShared(3);
  CHECK(!hostile.await(ticket(1) + 1));
  CHECK(hostile.await(ticket(1) + 3));
  turn.passShared(3);
}

// Random calls of many threads, so many that the lower half of the tickets overflows. Half of the
// threads pass rows of shared tickets together.
TEST_CASE("each thread's tickets are served in order, and those before one that is alone") {
  constexpr int kThreads = 6, kCalls = 30'000;
  TicketCounter counter;
  TicketTurn turn;
  std::atomic<std::uint64_t> inside{0}, passed{kTicket};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::uint64_t row = 0, rowTurn = 0;
      const auto endRow = [&] {
        if (row > 0) turn.passShared(row);
        row = 0;
      };
      for (int call = 0; call < kCalls; ++call) {
        const bool shared = (call * 7 + thread) % 16 != 0;
        const std::uint64_t mine = shared ? counter.takeShared() : counter.take();
        const bool goesOn = shared && row > 0 && mine / kTicket == rowTurn;
        if (!goesOn) endRow();
        CHECK((goesOn || turn.await(mine, shared)));
        const std::uint64_t others = inside.fetch_add(shared ? 1 : kTicket);
        if (shared)
          CHECK(others < kTicket);
        else
          CHECK((others == 0 && passed == mine));
        inside -= shared ? 1 : kTicket;
        passed += shared ? 1 : kTicket;
        if (shared && thread % 2 == 0)
          ++row, rowTurn = mine / kTicket;
        else
          turn.pass(mine, shared);
      }
      endRow();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(passed == counter.next());
}

TEST_CASE("stop() ends every wait") {
  TicketTurn turn;
  std::list<unit::Waiter> threads;
  for (const std::uint64_t each : {ticket(2), ticket(3), ticket(18), ~std::uint64_t{0}}) {
    threads.emplace_back([&, each] {
      CHECK(!turn.await(each, false));
      CHECK(!turn.await(each, true));
    });
    CHECK(threads.back().waits());
  }
  turn.stop();
  threads.clear();
  CHECK(!turn.await(ticket(1)));
  CHECK(!turn.await(0));
}

}  // namespace
}  // namespace wire
