// Accounts of allocations: virtual time for the order of turns, tokens for fixed shares, reported
// figures, and the success of drains.
#include <algorithm>
#include <cmath>

#include "native/arbiter/schedule.h"

namespace arbiter {

namespace {

constexpr Time kPercent = 100;
/// Number of drains in vain after which the next one is not waited for.
constexpr int kMostInVain = 4;
/// kHabit: windows without a pause after which pauses count as rare. kMostSteady: maximum count.
/// kPerPause: what a window with a pause subtracts. kPausing: minimum count, and below 0 pauses
/// count as frequent.
constexpr int kHabit = 2, kMostSteady = 4, kPerPause = 2, kPausing = -2;

}  // namespace

/// Brings all accounts up to `now`.
void Schedule::settle(Time now) {
  const Time passed = now - settled_;
  if (passed <= 0) return;
  settled_ = now;
  for (auto& [name, gpu] : gpus_) gpu.occupants = 0;
  for (auto& [id, a] : allocations_) {
    for (Gpu* gpu : a.gpus) {
      if (occupies(a)) gpu->occupants += a.contexts;
    }
  }
  for (auto& [id, a] : allocations_) {
    if (occupies(a) && a.stage != Stage::open) charge(a, passed);
    if (isInTheWay(a)) a.overrun += passed;
    if (limited(a)) refill(a, passed);
    if (a.outranked) owe(a, passed);
    if (a.demand == Demand::waiting) a.use.waited += passed;
    if (a.demand != Demand::none) a.lastDemand = now;
  }
}

/// Converts time to virtual time, which passes more slowly for a larger weight.
Time Schedule::byWeight(const Allocation& a, Time time) { return time * kPercent / a.terms.weight; }

/// Charges elapsed time. Allocations that occupy a GPU together share the charge by contexts.
void Schedule::charge(Allocation& a, Time passed) {
  Time sum = 0;
  for (std::size_t i = 0; i < a.gpus.size(); ++i) {
    const Time part = passed * a.contexts / a.gpus[i]->occupants;
    a.served[i] += byWeight(a, part);
    sum += part;
  }
  const Time mean = sum / static_cast<Time>(a.gpus.size());
  (a.stage == Stage::window ? a.use.granted : a.use.overrun) += mean;
  if (limited(a)) a.tokens -= mean;
  if (a.outranked) repay(a, mean);
}

/// The part of `time` that it keeps beside higher priorities. Its share is its weight in percent,
/// or less if the weights of all competitors exceed 100.
Time Schedule::guaranteeOf(const Allocation& a, Time time) const {
  int weights = kPercent;
  for (const Gpu* gpu : a.gpus) weights = std::max(weights, gpu->weights);
  return time * a.terms.weight * timing_.guarantee / (weights * kPercent);
}

/// No longer than a window at priority 0: a lower priority must not delay higher ones for longer.
Time Schedule::guaranteedWindowOf(const Allocation& a) const {
  return std::min(leastWindowOf(a), timing_.window);
}

/// While it wants a GPU, it is owed its guarantee. Two windows are enough to catch up.
void Schedule::owe(Allocation& a, Time passed) const {
  if (a.demand == Demand::none) return;
  a.owed = std::min(a.owed + guaranteeOf(a, passed), 2 * guaranteedWindowOf(a));
}

/// What it gets while higher priorities pause counts for a limited time. What it took from them
/// counts until it is paid back.
void Schedule::repay(Allocation& a, Time used) const {
  const bool left = a.stage == Stage::window && !a.guaranteed;
  const Time least = left ? std::min(a.owed, -guaranteeOf(a, timing_.guaranteePeriod)) : -kNever;
  a.owed = std::max(a.owed - used, least);
}

/// Whether it precedes higher priorities: it is owed a window, or its work waits for more of it.
bool Schedule::isDue(const Allocation& a) const {
  return a.outranked && timing_.guarantee > 0 &&
         (a.owed >= guaranteedWindowOf(a) || mayWaitForItself(a));
}

bool Schedule::isGuaranteed(const Allocation& a, Time now) { return a.guaranteed && now < a.end; }

void Schedule::learnDrain(Allocation& a, bool ended, Time now) {
  if (ended && now - a.closed <= timing_.drain)
    a.inVain = std::max(a.inVain - 1, 0);
  else
    a.inVain = std::min(a.inVain + 1, kMostInVain);
}

void Schedule::learnPace(Allocation& a, Pace pace) {
  if (pace == Pace::steady) a.steady = std::min(a.steady + 1, kMostSteady);
  if (pace == Pace::pausing) a.steady = std::max(a.steady - kPerPause, kPausing);
}

bool Schedule::seldomPauses(const Allocation& a) { return a.steady >= kHabit; }
bool Schedule::oftenPauses(const Allocation& a) { return a.steady < 0; }

/// Drain timeout. It halves after each drain that timed out, and is 0 in the end; then the hardware
/// slices between the two.
Time Schedule::patience(const Allocation& a) const {
  return a.inVain == kMostInVain ? 0 : timing_.drain >> a.inVain;
}

/// Adds tokens. While it competes, an allocation may keep those of a whole period; idle, only those
/// of one short window.
void Schedule::refill(Allocation& a, Time passed) {
  const Time most = a.competes || a.demand != Demand::none
                        ? timing_.fixedPeriod * a.terms.weight / kPercent
                        : leastTokens(a);
  a.tokens = std::min(a.tokens + passed * a.terms.weight / kPercent, most);
}

/// Tokens that a fixed share needs to start: a whole window, but no more than half a period earns.
Time Schedule::leastTokens(const Allocation& a) const {
  return std::min(leastWindowOf(a), timing_.fixedPeriod / 2 * a.terms.weight / kPercent);
}

bool Schedule::limited(const Allocation& a) {
  return a.terms.policy == Policy::fixed && a.terms.weight < kPercent;
}

bool Schedule::hasTokens(const Allocation& a) const {
  return !limited(a) || a.tokens >= leastTokens(a);
}

bool Schedule::hasTokensBy(const Allocation& a, Time when) const {
  return !limited(a) || a.tokens + std::max<Time>(when - settled_, 0) * a.terms.weight / kPercent >=
                            leastTokens(a);
}

/// Time that its tokens last while it uses and earns them.
Time Schedule::tokensLast(const Allocation& a) const {
  if (!limited(a)) return kNever / 2;
  return std::max<Time>(a.tokens, 0) * kPercent / (kPercent - a.terms.weight);
}

/// Shortest window of an allocation. A higher priority gets a shorter one, to wait less for its
/// peers; a lower one gets fewer switches.
Time Schedule::leastWindowOf(const Allocation& a) const {
  const auto window =
      static_cast<Time>(static_cast<double>(timing_.window) * std::exp2(-a.terms.priority / 50.0));
  return std::clamp(window, std::min(timing_.window, timing_.shortestWindow),
                    std::max(timing_.window, timing_.longestWindow));
}

/// Length of the next window. If all competitors pause seldom, no program waits for an answer. Then
/// a turn of all takes several windows, and an allocation with a large weight gets a longer window
/// at once. If all want a low latency, windows are short: nobody loses throughput to another's
/// wish.
Time Schedule::windowOf(const Allocation& a) const {
  const Time least = leastWindowOf(a);
  int weights = a.terms.weight;
  bool steady = seldomPauses(a), low = a.terms.lowLatency;
  for (const auto& [id, other] : allocations_) {
    if (&other == &a || !overlaps(a, other) || !hadDemand(other, timing_.contention, settled_))
      continue;
    steady = steady && seldomPauses(other);
    low = low && other.terms.lowLatency;
    weights += other.terms.weight;
  }
  if (low) return std::min(least, timing_.shortestWindow);
  if (!steady) return least;
  return std::clamp(timing_.round * least * a.terms.weight / weights, least,
                    std::max(least, std::min(timing_.longer * least, timing_.longestWindow)));
}

/// Time after which a window ends at the next pause. If all competitors pause often, somebody waits
/// for each answer, and a window that ends at a pause costs hardly more than the pause. A different
/// priority has its own rules.
Time Schedule::untilPause(const Allocation& a) const {
  int competitors = 1;
  bool low = a.terms.lowLatency;
  for (const auto& [id, other] : allocations_) {
    if (&other == &a || !overlaps(a, other) || !hadDemand(other, timing_.contention, settled_))
      continue;
    if (!oftenPauses(other) || other.terms.priority != a.terms.priority) return kNever;
    low = low && other.terms.lowLatency;
    ++competitors;
  }
  if (!oftenPauses(a)) return kNever;
  return low ? timing_.lowPausing
             : std::max(timing_.pausingTurn / competitors, timing_.shortestPausing);
}

/// How far it is ahead of those that wait on any of its GPUs, in steps of `level`. Turns need not
/// be exact to a microsecond. A wait changes no level, so the next allocation knows that it is
/// next.
Time Schedule::levelOf(const Allocation& a) const {
  Time ahead = -kNever / 2;
  for (std::size_t i = 0; i < a.gpus.size(); ++i)
    ahead = std::max(ahead, a.served[i] - a.gpus[i]->base);
  return ahead / byWeight(a, timing_.level);
}

/// Notes which allocations have a higher priority beside them. Without one, nothing is owed.
void Schedule::rank(Time now) {
  for (auto& [id, a] : allocations_) {
    a.outranked = std::any_of(allocations_.begin(), allocations_.end(), [&](const auto& entry) {
      const Allocation& other = entry.second;
      return other.terms.priority > a.terms.priority && overlaps(a, other) &&
             hadDemand(other, timing_.contentionByHigher, now);
    });
    if (!a.outranked) a.owed = 0;
  }
}

/// An allocation that begins to compete starts near the minimum virtual time, so idle time is not
/// saved up. A small credit remains, so that a short pause does not lose the turn.
void Schedule::compete() {
  for (auto& [id, a] : allocations_) {
    const bool competes = holds(a) || waits(a);
    const Time credit = byWeight(a, timing_.credit);
    for (std::size_t i = 0; competes && !a.competes && i < a.gpus.size(); ++i)
      a.served[i] = std::max(a.served[i], a.gpus[i]->clock - credit);
    a.competes = competes;
  }
  for (auto& [name, gpu] : gpus_) {
    Time least = kNever, waiting = kNever;
    gpu.weights = 0;
    for (const auto& [id, a] : allocations_) {
      for (std::size_t i = 0; a.competes && i < a.gpus.size(); ++i) {
        if (a.gpus[i] != &gpu) continue;
        gpu.weights += a.terms.weight;
        least = std::min(least, a.served[i]);
        if (waits(a)) waiting = std::min(waiting, a.served[i]);
      }
    }
    if (least != kNever) gpu.clock = std::max(gpu.clock, least);
    gpu.base = waiting == kNever ? gpu.clock : waiting;
  }
}

}  // namespace arbiter
