// Who may use which GPU when: the policy alone. No clock, no thread, no system call: time comes in as an argument, so that a test can play
// hours in a moment.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "native/arbiter/mailbox.h"
#include "native/arbiter/rhythm.h"

namespace arbiter {

enum class Policy { burst, fixed };

/// What an allocation was granted.
struct Terms {
  int weight = 100;  ///< percent of the time of each of its GPUs
  Policy policy = Policy::burst;
  int priority = 0;  ///< -100 to 100, higher first
  std::vector<std::string> gpus;
  bool operator==(const Terms&) const = default;
};

/// The numbers of the policy; README.md says why these.
struct Timing {
  Time window = 5 * kMillisecond;  ///< at priority 0
  int round = 6, longer = 3;       ///< where pauses are few: windows that a turn of all takes, and of which one has at most
  Time shortestWindow = 2 * kMillisecond, longestWindow = 20 * kMillisecond;
  Time drain = 4 * kMillisecond;  ///< how long the next one waits for a closed window's work to end; less if it often does not
  Time urgentDrain = 0;           ///< the same for one of higher priority: what is queued beside it is less than a handover takes
  Time queue = 2 * kMillisecond;  ///< work that may wait on the device inside a window
  Time queueBesideHigher = 150 * kMicrosecond;
  Time contention = 500 * kMillisecond;  ///< so long after a neighbour's last demand an allocation stays in windows
  Time contentionByHigher = 10 * kSecond;
  Time fixedPeriod = 100 * kMillisecond;  ///< over which a fixed share is kept
  Time level = kMillisecond;              ///< of virtual time: who differ by less take turns
  Time credit = 10 * kMillisecond;        ///< of its own time that one may be owed when it comes back from a pause
  Time recordPair = kMillisecond;         ///< two timed events closer than that belong together
  Time overlap = 10 * kSecond;            ///< how long work that does not end is charged beside others
  Time handover = 2'200 * kMicrosecond;   ///< so long the arbiter stays awake for a drain: what may be queued, and a little
  Time reopening = 200 * kMicrosecond;    ///< from the end of the work of one that goes first until others are let in
  Time sampling = 100 * kMillisecond;     ///< so late may be said at most what ran behind an open gate
  Time parted = 20 * kMillisecond;        ///< so long work on several GPUs overruns, with more at the gate, until it has the next turn
  Time shortestLoan = kMillisecond;       ///< of a GPU that is kept free for an allocation of several
};

/// Nanoseconds since the allocation was made.
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

/// What an allocation's workers are to be told.
struct Order {
  std::string id;
  Grant grant;
  Time queue;
  bool standby = false;  ///< the window is not its yet: it says so when it begins to use it
  bool operator==(const Order&) const = default;
};

/// A time that an allocation is to leave free: work that would not be done before it waits until it is over.
struct Reservation {
  Time from = kNever, until = 0;
  Time longest = 0;  ///< work that takes longer has no better moment, and is not held back
  bool operator==(const Reservation&) const = default;
};

class Schedule {
 public:
  explicit Schedule(const Timing& timing = {}) : timing_(timing) {}

  /// At priority 0, of grants from now on.
  void setWindow(Time window) { timing_.window = window; }
  /// Makes an allocation, or changes its terms.
  void put(const std::string& id, const Terms& terms, Time now);
  void remove(const std::string& id, Time now);

  /// `waiting` from behind a closed gate, `none` and `busy` from inside a grant; what does not fit the state says nothing new.
  void setDemand(const std::string& id, Demand demand, Time now);
  /// Nothing of it runs any more since its gate was closed, and this is how its work went on before.
  void drained(const std::string& id, Pace pace, Time now);
  /// When it recorded a timed event last.
  void recorded(const std::string& id, Time when);
  /// For how long work of an open allocation ran since this was said last. Such time counts as granted, as far as it has passed.
  void used(const std::string& id, Time used, Time now);

  /// Decides what holds from now on; returns what is new. To be called after the inputs above, and at deadline().
  std::vector<Order> advance(Time now);
  /// When something changes by itself; kNever when only an input can change anything.
  Time deadline() const { return deadline_; }

  /// When what holds for it is expected to change: its window to end because another waits, or the one that it waits for. 0: nobody knows.
  Time expected(const std::string& id) const;
  /// What it is to leave free for one that goes first, is idle, and comes regularly.
  Reservation reservation(const std::string& id) const;
  /// A window is about to end, or has just ended and its work is still running, and another waits for it; or one that stands by may begin
  /// at any moment, since it did not long ago.
  bool isHandingOver(Time now) const;
  /// There are others on its GPUs, and they must yield to it.
  bool outranks(const std::string& id) const;

  /// What holds for it. Closed when there is no such allocation.
  Order order(const std::string& id) const;
  TimeUse use(const std::string& id) const;

 private:
  struct Allocation;
  struct Gpu {
    unsigned users = 0;      ///< allocations
    unsigned occupants = 0;  ///< allocations whose work may be running there
    Time clock = 0;          ///< the least virtual time of those that compete for it; never goes back
    Allocation* holder = nullptr;
    Time lentUntil = kNever;  ///< kept free for an allocation of several GPUs from then on
  };

  enum class Stage {
    closed,
    standby,      ///< idle, and let in at once: whoever has its GPUs must yield to it anyway
    draining,     ///< nothing new, but its work still has the GPU
    overrunning,  ///< its work goes on, and others start nevertheless
    window,
    open,
  };

  struct Allocation {
    std::string id;
    Terms terms;
    std::vector<Gpu*> gpus;
    std::vector<Time> served;  ///< virtual time on each: what it was charged, byWeight
    Stage stage = Stage::closed;
    Demand demand = Demand::none;
    bool competes = false;
    bool extended = false;  ///< the window has been kept open for a pair of events already
    Time since = 0;         ///< waits since then; a holder, for its next window
    Time closed = 0;        ///< when its gate was closed last
    Time end = 0;           ///< of the window, of waiting for a drain, of charging an overrun
    Time leastEnd = 0;      ///< of the window, where one waits that wants an answer
    Time uncounted = 0;     ///< since then it may have used time behind its open gate that was not counted
    Time lastDemand = -kNever / 2;
    Time lastRecord = -kNever / 2;
    int inVain = 0;   ///< drains in a row that were waited for in vain, less those since that were not
    int steady = 0;   ///< windows without a pause, less twice those with one
    Time tokens = 0;  ///< of a fixed share: time that may still be used
    Rhythm rhythm;
    TimeUse use;
    Order told;
  };

  static bool holds(const Allocation& a) { return a.stage == Stage::window || a.stage == Stage::open || a.stage == Stage::draining; }
  static bool occupies(const Allocation& a) { return a.stage != Stage::closed && a.stage != Stage::standby; }
  static bool overlaps(const Allocation& a, const Allocation& b);
  static bool limited(const Allocation& a);
  bool waits(const Allocation& a) const;
  bool wanted(const Allocation& a) const;
  bool hasTokens(const Allocation& a) const;
  bool hasTokensBy(const Allocation& a, Time when) const;
  Time leastTokens(const Allocation& a) const;
  Time tokensLast(const Allocation& a) const;
  Time leastWindowOf(const Allocation& a) const;
  Time windowOf(const Allocation& a) const;
  static bool seldomPauses(const Allocation& a);
  Time levelOf(const Allocation& a) const;
  bool mayWaitForItself(const Allocation& a) const;
  bool before(const Allocation& a, const Allocation& b) const;
  static Time byWeight(const Allocation& a, Time time);
  bool hadDemand(const Allocation& a, Time within, Time now) const;
  bool contended(const Allocation& a, Time now) const;
  Time queueOf(const Allocation& a, Time now) const;

  void attach(Allocation& a);
  void detach(Allocation& a);
  void settle(Time now);
  void charge(Allocation& a, Time passed);
  void refill(Allocation& a, Time passed);
  void endStages(Time now);
  void compete();
  bool mustYield(Allocation& holder, Time now);
  bool keptForRecords(Allocation& holder, Time now) const;
  void renew(Allocation& holder, Time now);
  void shorten(Allocation& holder);
  void close(Allocation& holder, bool urgent, Time now);
  void learnDrain(Allocation& a, bool ended, Time now);
  static void learnPace(Allocation& a, Pace pace);
  Time patience(const Allocation& a) const;
  void standBy(Allocation& a, Time now);
  void grantAll(Time now);
  bool tryGrant(Allocation& a, Time now);
  void grant(Allocation& a, Time until, Time now);
  std::vector<Order> tell(Time now);
  Time nextChange(const Allocation& a, Time now) const;
  Allocation* find(const std::string& id);

  Timing timing_;
  std::map<std::string, Gpu> gpus_;
  std::map<std::string, Allocation> allocations_;
  Time settled_ = 0;
  Time deadline_ = kNever;
};

}  // namespace arbiter
