// Simulates tenants and GPUs under a Schedule in virtual time, in steps of 10 us. Tenants whose
// work is on a GPU at the same time share it.
#pragma once

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "native/arbiter/schedule.h"

namespace arbiter::test {

inline constexpr Time kStep = 10 * kMicrosecond;

/// Submits rounds: a kernel, then a pause of `think` once it is done. A batch job has no pauses and
/// keeps the queue full.
struct Tenant {
  std::string id;
  Terms terms;
  Time kernel = 200 * kMicrosecond;
  Time think = 0;                 ///< 0: a batch job
  Time from = 0, until = kNever;  ///< when it has work

  Time onDevice = 0;  ///< work that was submitted and has not run
  Time done = 0;      ///< work that has run
  Time idleSince = 0;
  Time granted = 0;  ///< when its window began
  Time nextRound = 0;
  Time roundWaits = -1;  ///< since when the round stands at the gate
  Time longestWait = 0;
  Time roundBegan = 0, longestRound = 0;  ///< from its submission to its end
  Reservation reservation;
  Pace pace = Pace::unknown;
  bool saidWaiting = false, saidDrained = true, saidIdle = false;
};

class Simulation {
 public:
  explicit Simulation(std::vector<Tenant> all, const Timing& timing = {})
      : tenants(std::move(all)), schedule(timing) {
    for (const Tenant& t : tenants) schedule.put(t.id, t.terms, now);
  }

  std::vector<Tenant> tenants;
  Schedule schedule;
  Time now = 0;
  int orders = 0;  ///< that the schedule gave

  void run(Time length) {
    for (const Time end = now + length; now < end; now += kStep) step();
  }

  Tenant& operator[](const std::string& id) {
    return *std::find_if(tenants.begin(), tenants.end(),
                         [&](const Tenant& t) { return t.id == id; });
  }
  Time charged(const std::string& id) const {
    return schedule.use(id).granted + schedule.use(id).overrun;
  }
  /// Percent of the time that it was charged.
  double share(const std::string& id) const {
    return 100.0 * static_cast<double>(charged(id)) / static_cast<double>(now);
  }
  Grant grant(const std::string& id) const { return schedule.order(id).grant; }
  void kill(const std::string& id) {
    std::erase_if(tenants, [&](const Tenant& t) { return t.id == id; });
    schedule.remove(id, now);
    decide();
  }

 private:
  void step() {
    bool changed = now >= schedule.deadline();
    for (Tenant& t : tenants) changed = submit(t) || changed;
    if (changed) decide();
    for (Tenant& t : tenants) execute(t);
    changed = false;
    for (Tenant& t : tenants) changed = answer(t) || changed;
    if (changed) decide();
  }

  void decide() {
    for (const Order& order : schedule.advance(now)) {
      ++orders;
      Tenant& t = (*this)[order.id];
      if (order.grant == Grant::closed)
        t.saidDrained = false;
      else
        t.saidWaiting = t.saidIdle = false, t.granted = now;
    }
    for (Tenant& t : tenants) t.reservation = schedule.reservation(t.id);
  }

  bool hasWork(const Tenant& t) const {
    return now >= t.from && now < t.until &&
           (t.think == 0 || (t.onDevice == 0 && now >= t.nextRound));
  }

  /// True if the tenant has told the arbiter something.
  bool submit(Tenant& t) {
    if (!hasWork(t)) return false;
    const Order order = schedule.order(t.id);
    if (order.grant == Grant::closed) {
      if (t.roundWaits < 0) t.roundWaits = now;
      if (t.saidWaiting) return false;
      schedule.setDemand(t.id, Demand::waiting, now);
      return t.saidWaiting = true;
    }
    if (t.roundWaits >= 0) t.longestWait = std::max(t.longestWait, now - t.roundWaits);
    t.roundWaits = -1;
    if (t.pace == Pace::unknown && order.grant == Grant::window) t.pace = Pace::steady;
    const bool begins = order.standby;
    if (std::exchange(t.saidIdle, false) || begins) schedule.setDemand(t.id, Demand::busy, now);
    const Time limit = order.grant == Grant::open ? 10 * kMillisecond : order.queue;
    if (t.think == 0)
      while (t.onDevice < limit && !isReserved(t)) t.onDevice += t.kernel;
    else
      t.onDevice += t.kernel, t.nextRound = kNever, t.roundBegan = now;
    return begins;
  }

  bool isReserved(const Tenant& t) const {
    return now < t.reservation.until && t.kernel <= t.reservation.longest &&
           now + t.onDevice + t.kernel > t.reservation.from;
  }

  bool shares(const Tenant& a, const Tenant& b) const {
    return std::any_of(a.terms.gpus.begin(), a.terms.gpus.end(), [&](const std::string& gpu) {
      return std::find(b.terms.gpus.begin(), b.terms.gpus.end(), gpu) != b.terms.gpus.end();
    });
  }

  void execute(Tenant& t) {
    if (t.onDevice == 0) return;
    const auto users = std::count_if(tenants.begin(), tenants.end(), [&](const Tenant& other) {
      return other.onDevice > 0 && shares(t, other);
    });
    const Time ran = std::min<Time>(t.onDevice, kStep / users);
    t.onDevice -= ran;
    t.done += ran;
    t.idleSince = now + kStep;
    if (t.onDevice == 0 && grant(t.id) == Grant::window) t.pace = Pace::pausing;
    if (t.onDevice > 0 || t.think == 0) return;
    t.nextRound = now + kStep + t.think;
    t.longestRound = std::max(t.longestRound, now + kStep - t.roundBegan);
  }

  /// Whether it has submitted all of its round, and its window may end.
  bool pauses(const Tenant& t, Grant grant) {
    return t.think > 0 && !t.saidIdle && grant == Grant::window &&
           now - std::max(t.roundBegan, t.granted) >= static_cast<Time>(kPauseNanoseconds) &&
           schedule.yieldsAt(t.id, now) >=
               (t.onDevice > 0 ? Yields::whileWorkRuns : Yields::atAnyPause);
  }

  bool answer(Tenant& t) {
    const Grant grant = schedule.order(t.id).grant;
    if (pauses(t, grant)) {
      schedule.setDemand(t.id, Demand::none, now);
      return t.saidIdle = true;
    }
    if (t.onDevice > 0) return false;
    if (grant == Grant::closed && !t.saidDrained) {
      schedule.drained(t.id, std::exchange(t.pace, Pace::unknown), now);
      return t.saidDrained = true;
    }
    if (t.saidIdle || grant != Grant::window ||
        now - std::max(t.idleSince, t.granted) < static_cast<Time>(kGapNanoseconds))
      return false;
    schedule.setDemand(t.id, Demand::none, now);
    return t.saidIdle = true;
  }
};

/// CHECK(value == near(50)): equal to 50 within 2.
struct Near {
  double expected, within;
};
inline Near near(double expected, double within = 2.0) { return {expected, within}; }
inline bool operator==(double value, const Near& other) {
  return std::abs(value - other.expected) <= other.within;
}
inline std::ostream& operator<<(std::ostream& out, const Near& value) {
  return out << value.expected << " within " << value.within;
}

inline Terms terms(int weight, Policy policy = Policy::burst, int priority = 0,
                   std::vector<std::string> gpus = {"gpu"}) {
  return {weight, policy, priority, std::move(gpus)};
}

inline Tenant batch(const std::string& id, Terms t, Time kernel = 200 * kMicrosecond) {
  Tenant tenant;
  tenant.id = id;
  tenant.terms = std::move(t);
  tenant.kernel = kernel;
  return tenant;
}

}  // namespace arbiter::test
