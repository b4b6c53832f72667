// Scheduling policy: decides which allocation may use which GPU. Pure logic without clock, threads
// or system calls. Time is an argument, so tests simulate hours instantly.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "native/arbiter/mailbox.h"
#include "native/arbiter/rhythm.h"

namespace arbiter {

enum class Policy { burst, fixed };

/// Resources granted to an allocation.
struct Terms {
  int weight = 100;  ///< percent of the time of each GPU
  Policy policy = Policy::burst;
  int priority = 0;  ///< -100 to 100, higher first
  std::vector<std::string> gpus;
  bool lowLatency = false;  ///< accepts short windows, which cost throughput
  bool operator==(const Terms&) const = default;
};

/// Parameters of the policy; README.md gives the reasons.
struct Timing {
  Time window = 5 * kMillisecond;  ///< at priority 0
  /// if pauses are rare: windows in a turn of all allocations, and the most of them for one
  int round = 6, longer = 3;
  Time shortestWindow = 2 * kMillisecond, longestWindow = 20 * kMillisecond;
  /// if all competitors pause often: a turn of all in which each may lose its window at a pause,
  /// and the least time after which it may
  Time pausingTurn = 3'850 * kMicrosecond, shortestPausing = 1'300 * kMicrosecond;
  /// the least time if all of them want a low latency
  Time lowPausing = 700 * kMicrosecond;
  /// time after that in which a pause without running work does not end it
  Time runningPause = 250 * kMicrosecond;
  /// maximum drain time after a window; shortened if drains often time out
  Time drain = 4 * kMillisecond;
  /// drain time before a higher priority; zero, because the queue beside it is shorter than a
  /// handover
  Time urgentDrain = 0;
  Time queue = 2 * kMillisecond;  ///< maximum work queued on the device in a window
  Time queueBesideHigher = 150 * kMicrosecond;
  /// time after a neighbour's last demand for which an allocation stays in windows
  Time contention = 500 * kMillisecond;
  Time contentionByHigher = 10 * kSecond;
  Time fixedPeriod = 100 * kMillisecond;  ///< period of a fixed share
  Time level = kMillisecond;        ///< of its own time: allocations that differ by less take turns
  Time credit = 10 * kMillisecond;  ///< of its own time, which it may be owed after a pause
  /// percent of its share that an allocation keeps beside higher priorities
  int guarantee = 50;
  /// time of that guarantee for which an allocation that had more than it can wait
  Time guaranteePeriod = 100 * kMillisecond;
  Time recordPair = kMillisecond;  ///< maximum gap of two timed events that belong together
  Time overrunLimit = 0;           ///< maximum overrun beside others that want the GPU; 0: no limit
  Time stuck = 10 * kSecond;       ///< like `parted`, on one GPU
  /// time that the arbiter stays awake for a drain: the queued work and a margin
  Time handover = 2'200 * kMicrosecond;
  /// time from the end of a higher priority's work until others are let in
  Time reopening = 200 * kMicrosecond;
  Time sampling = 100 * kMillisecond;  ///< maximum delay of reports of work behind an open gate
  /// overrun of work on several GPUs, with more at the gate, after which it gets the next turn
  Time parted = 20 * kMillisecond;
  /// shortest use of a GPU that is reserved for an allocation of several GPUs
  Time shortestLoan = kMillisecond;
};

/// Nanoseconds since the allocation was created.
struct TimeUse {
  Time granted = 0;  ///< inside windows, or open and running
  Time waited = 0;   ///< with work at the gate and no grant
  Time overrun = 0;  ///< from the end of a window until its work had ended
  std::uint64_t windows = 0;
};

enum class Demand {
  none,
  busy,     ///< uses its grant
  waiting,  ///< has work at a closed gate
};

/// Pauses that end a window: nothing was submitted for kPauseNanoseconds.
enum class Yields {
  never,
  whileWorkRuns,  ///< a pause that hides the handover: its work still runs
  atAnyPause,
};

/// A decision for an allocation's workers.
struct Order {
  std::string id;
  Grant grant;
  Time queue;
  /// the window is not the allocation's yet: it reports when it begins to use it
  bool standby = false;
  bool operator==(const Order&) const = default;
};

/// A time to keep free. Work that would not end before it waits until it is over.
struct Reservation {
  Time from = kNever, until = 0;
  Time longest = 0;  ///< longer work is not held back, because no later time suits it better
  bool operator==(const Reservation&) const = default;
};

class Schedule {
 public:
  explicit Schedule(const Timing& timing = {}) : timing_(timing) {}

  /// Sets the window at priority 0, for future grants.
  void setWindow(Time window) { timing_.window = window; }
  void setOverrunLimit(Time limit) { timing_.overrunLimit = limit; }
  /// Sets the percentage of its share that an allocation keeps beside higher priorities.
  void setGuarantee(int percent) { timing_.guarantee = percent; }
  /// Creates an allocation, or changes its terms.
  void put(const std::string& id, const Terms& terms, Time now);
  void remove(const std::string& id, Time now);

  /// Demand is `waiting` behind a closed gate, `none` or `busy` inside a grant. A value that does
  /// not fit the state is ignored.
  void setDemand(const std::string& id, Demand demand, Time now);
  /// All work has ended since the gate closed. `pace`: how continuously the window was used.
  void drained(const std::string& id, Pace pace, Time now);
  /// Number of contexts with running work behind the closed gate. The hardware gives each a time
  /// slice, so each is charged.
  void setContexts(const std::string& id, int contexts, Time now);
  /// Time of the allocation's last timed event.
  void recorded(const std::string& id, Time when);
  /// Time that work of an open allocation ran since the last report. It counts as granted, up to
  /// the time that has passed.
  void used(const std::string& id, Time used, Time now);

  /// Updates all decisions; returns the changed ones. Call it after the inputs above, and at
  /// deadline().
  std::vector<Order> advance(Time now);
  /// Time of the next change without an input; kNever if there is none.
  Time deadline() const { return deadline_; }

  /// When the allocation's grant is expected to change: the end of its window, if another waits, or
  /// of the window that it waits for. Windows that end at a pause: from when on. 0: unknown.
  Time expected(const std::string& id) const;
  /// Which pauses of its program end its window now.
  Yields yieldsAt(const std::string& id, Time now);
  /// Time to keep free for an idle allocation of higher priority with periodic work.
  Reservation reservation(const std::string& id) const;
  /// Whether a handover is near, or in progress: a window with a waiter is about to end, or is
  /// draining; or a standby allocation was active recently.
  bool isHandingOver(Time now) const;
  /// Whether allocations that must yield to it share its GPUs.
  bool outranks(const std::string& id) const;

  /// Time that its work has run on while others wanted its GPUs, if that exceeds the limit; else 0.
  Time overdue(const std::string& id) const;

  /// The current decision. Closed if the allocation does not exist.
  Order order(const std::string& id) const;
  TimeUse use(const std::string& id) const;

 private:
  struct Allocation;
  struct Gpu {
    unsigned users = 0;  ///< number of allocations on it
    int weights = 0;     ///< sum of the competitors' weights
    int occupants = 0;   ///< number of contexts whose work may be running there
    Time clock = 0;      ///< minimum virtual time of the competitors; never decreases
    Time base = 0;       ///< minimum virtual time of those that wait
    Allocation* holder = nullptr;
    Time lentUntil = kNever;  ///< from then on reserved for an allocation of several GPUs
  };

  enum class Stage {
    closed,
    standby,      ///< idle, and may start at once, because the holders of its GPUs must yield to it
    draining,     ///< closed, but its work still has the GPU
    overrunning,  ///< its work continues and is charged, but others may start
    window,
    open,
  };

  struct Allocation {
    std::string id;
    Terms terms;
    std::vector<Gpu*> gpus;
    std::vector<Time> served;  ///< virtual time on each GPU: the charged time by weight
    Stage stage = Stage::closed;
    Demand demand = Demand::none;
    bool competes = false;
    bool outranked = false;   ///< a higher priority wants its GPUs, or did recently
    bool guaranteed = false;  ///< a higher priority does not end this window
    bool extended = false;    ///< the window was already extended for a pair of events
    Time since = 0;           ///< start of waiting; for a holder, of waiting for the next window
    Time closed = 0;          ///< when its gate last closed
    Time end = 0;             ///< end of the window, or of the drain timeout
    int contexts = 1;         ///< contexts with running work
    /// time of its overrun beside others, since all of its work had last ended
    Time overrun = 0;
    Time leastEnd = 0;   ///< end of the window if a tenant that pauses waits
    Time pauseFrom = 0;  ///< from then on the window ends at a pause, if another waits
    Time uncounted = 0;  ///< start of the time behind its open gate that is not counted yet
    Time lastDemand = -kNever / 2;
    Time lastRecord = -kNever / 2;
    int inVain = 0;   ///< drains that timed out, minus those since that did not
    int steady = 0;   ///< windows without a pause, minus twice those with one; bounded
    Time tokens = 0;  ///< of a fixed share: time left to use
    Time owed = 0;    ///< of its guarantee beside higher priorities; negative: it had more
    Rhythm rhythm;
    TimeUse use;
    Order told;
  };

  static bool holds(const Allocation& a) {
    return a.stage == Stage::window || a.stage == Stage::open || a.stage == Stage::draining;
  }
  static bool occupies(const Allocation& a) {
    return a.stage != Stage::closed && a.stage != Stage::standby;
  }
  static bool overlaps(const Allocation& a, const Allocation& b);
  static bool limited(const Allocation& a);
  bool waits(const Allocation& a) const;
  bool wanted(const Allocation& a) const;
  bool isInTheWay(const Allocation& a) const;
  bool hasTokens(const Allocation& a) const;
  bool hasTokensBy(const Allocation& a, Time when) const;
  Time leastTokens(const Allocation& a) const;
  Time tokensLast(const Allocation& a) const;
  Time leastWindowOf(const Allocation& a) const;
  Time windowOf(const Allocation& a) const;
  static bool seldomPauses(const Allocation& a);
  static bool oftenPauses(const Allocation& a);
  Time untilPause(const Allocation& a) const;
  static Time endOf(const Allocation& a);
  Time levelOf(const Allocation& a) const;
  bool mayWaitForItself(const Allocation& a) const;
  bool isHeld(const Allocation& a) const;
  Time guaranteeOf(const Allocation& a, Time time) const;
  Time guaranteedWindowOf(const Allocation& a) const;
  bool isDue(const Allocation& a) const;
  static bool isGuaranteed(const Allocation& a, Time now);
  bool before(const Allocation& a, const Allocation& b) const;
  static Time byWeight(const Allocation& a, Time time);
  bool hadDemand(const Allocation& a, Time within, Time now) const;
  Time aloneFrom(const Allocation& a, Time now) const;
  bool contended(const Allocation& a, Time now) const;
  Time queueOf(const Allocation& a) const;

  void attach(Allocation& a);
  void detach(Allocation& a);
  void settle(Time now);
  void charge(Allocation& a, Time passed);
  void refill(Allocation& a, Time passed);
  void owe(Allocation& a, Time passed) const;
  void repay(Allocation& a, Time used) const;
  void endStages(Time now);
  void rank(Time now);
  void compete();
  bool mustYield(Allocation& holder, Time now);
  bool keptForRecords(Allocation& holder, Time now) const;
  void renew(Allocation& holder, bool due, Time now);
  void shorten(Allocation& holder);
  void close(Allocation& holder, bool urgent, Time now);
  void learnDrain(Allocation& a, bool ended, Time now);
  static void learnPace(Allocation& a, Pace pace);
  Time patience(const Allocation& a) const;
  void standBy(Allocation& a, Time now);
  void grantAll(Time now);
  bool tryGrant(Allocation& a, Time now);
  void grant(Allocation& a, Time until, Time now);
  std::vector<Order> tell();
  Time nextChange(const Allocation& a, Time now) const;
  Allocation* find(const std::string& id);

  Timing timing_;
  std::map<std::string, Gpu> gpus_;
  std::map<std::string, Allocation> allocations_;
  Time settled_ = 0;
  Time deadline_ = kNever;
};

}  // namespace arbiter
