// What each allocation has used: virtual time for its turn, tokens for a fixed share, the figures; and how its drains went.
#include <algorithm>
#include <cmath>

#include "native/arbiter/schedule.h"

namespace arbiter {

namespace {

constexpr Time kPercent = 100;
/// So many drains in vain, and the next one is not waited for.
constexpr int kMostInVain = 4;
/// So many windows without a pause, and that is taken for the habit; so many are remembered, and one with a pause takes back so many.
constexpr int kHabit = 2, kMostSteady = 4, kPerPause = 2;

}  // namespace

/// Brings all accounts up to `now`.
void Schedule::settle(Time now) {
  const Time passed = now - settled_;
  if (passed <= 0) return;
  settled_ = now;
  for (auto& [name, gpu] : gpus_) gpu.occupants = 0;
  for (auto& [id, a] : allocations_) {
    if (occupies(a)) std::for_each(a.gpus.begin(), a.gpus.end(), [](Gpu* gpu) { ++gpu->occupants; });
  }
  for (auto& [id, a] : allocations_) {
    if (occupies(a) && a.stage != Stage::open) charge(a, passed);
    if (limited(a)) refill(a, passed);
    if (a.demand == Demand::waiting) a.use.waited += passed;
    if (a.demand != Demand::none) a.lastDemand = now;
  }
}

/// Virtual time: the larger the share, the slower it passes.
Time Schedule::byWeight(const Allocation& a, Time time) { return time * kPercent / a.terms.weight; }

/// Where the work of several has a GPU at once, each has its part of it.
void Schedule::charge(Allocation& a, Time passed) {
  Time sum = 0;
  for (std::size_t i = 0; i < a.gpus.size(); ++i) {
    const Time part = passed / a.gpus[i]->occupants;
    a.served[i] += byWeight(a, part);
    sum += part;
  }
  const Time mean = sum / static_cast<Time>(a.gpus.size());
  (a.stage == Stage::window ? a.use.granted : a.use.overrun) += mean;
  if (limited(a)) a.tokens -= mean;
}

void Schedule::learnDrain(Allocation& a, bool ended, Time now) {
  if (ended && now - a.closed <= timing_.drain)
    a.inVain = std::max(a.inVain - 1, 0);
  else
    a.inVain = std::min(a.inVain + 1, kMostInVain);
}

void Schedule::learnPace(Allocation& a, Pace pace) {
  if (pace == Pace::steady) a.steady = std::min(a.steady + 1, kMostSteady);
  if (pace == Pace::pausing) a.steady = std::max(a.steady - kPerPause, 0);
}

bool Schedule::seldomPauses(const Allocation& a) { return a.steady >= kHabit; }

/// Whose work goes on and on is waited for less each time, and not at all in the end: the hardware slices between it and the next one.
Time Schedule::patience(const Allocation& a) const { return a.inVain == kMostInVain ? 0 : timing_.drain >> a.inVain; }

/// While it competes, what it cannot use at once stays with it for a while; idle, it saves up for one short window only.
void Schedule::refill(Allocation& a, Time passed) {
  const Time most = a.competes || a.demand != Demand::none ? timing_.fixedPeriod * a.terms.weight / kPercent : leastTokens(a);
  a.tokens = std::min(a.tokens + passed * a.terms.weight / kPercent, most);
}

/// What a fixed share must have saved before it starts: a whole window, but no more than comes in half a period.
Time Schedule::leastTokens(const Allocation& a) const {
  return std::min(leastWindowOf(a), timing_.fixedPeriod / 2 * a.terms.weight / kPercent);
}

bool Schedule::limited(const Allocation& a) { return a.terms.policy == Policy::fixed && a.terms.weight < kPercent; }

bool Schedule::hasTokens(const Allocation& a) const { return !limited(a) || a.tokens >= leastTokens(a); }

bool Schedule::hasTokensBy(const Allocation& a, Time when) const {
  return !limited(a) || a.tokens + std::max<Time>(when - settled_, 0) * a.terms.weight / kPercent >= leastTokens(a);
}

/// For how long its tokens last while it uses and earns them.
Time Schedule::tokensLast(const Allocation& a) const {
  if (!limited(a)) return kNever / 2;
  return std::max<Time>(a.tokens, 0) * kPercent / (kPercent - a.terms.weight);
}

/// Whoever has priority wants to wait little for its peers, whoever has not wants few switches.
Time Schedule::leastWindowOf(const Allocation& a) const {
  const auto window = static_cast<Time>(static_cast<double>(timing_.window) * std::exp2(-a.terms.priority / 50.0));
  return std::clamp(window, std::min(timing_.window, timing_.shortestWindow), std::max(timing_.window, timing_.longestWindow));
}

/// Where all that compete pause seldom, nobody waits for an answer: a turn of all may take some windows, and whoever has much of it may
/// have its part at once.
Time Schedule::windowOf(const Allocation& a) const {
  const Time least = leastWindowOf(a);
  int weights = a.terms.weight;
  bool steady = seldomPauses(a);
  for (const auto& [id, other] : allocations_) {
    if (&other == &a || !overlaps(a, other) || !hadDemand(other, timing_.contention, settled_)) continue;
    steady = steady && seldomPauses(other);
    weights += other.terms.weight;
  }
  if (!steady) return least;
  return std::clamp(timing_.round * least * a.terms.weight / weights, least,
                    std::max(least, std::min(timing_.longer * least, timing_.longestWindow)));
}

/// How far its virtual time is ahead of the least on any of its GPUs, roughly: a window of one's own is not due to a microsecond.
Time Schedule::levelOf(const Allocation& a) const {
  Time ahead = -kNever / 2;
  for (std::size_t i = 0; i < a.gpus.size(); ++i) ahead = std::max(ahead, a.served[i] - a.gpus[i]->clock);
  return (ahead < 0 ? ahead - timing_.level + 1 : ahead) / timing_.level;
}

/// Whoever begins to compete starts about level with the one that has had least: nobody saves up by being idle. A little remains owed, so
/// that one who pauses for a moment does not lose its turn.
void Schedule::compete() {
  for (auto& [id, a] : allocations_) {
    const bool competes = holds(a) || waits(a);
    const Time credit = byWeight(a, timing_.credit);
    for (std::size_t i = 0; competes && !a.competes && i < a.gpus.size(); ++i)
      a.served[i] = std::max(a.served[i], a.gpus[i]->clock - credit);
    a.competes = competes;
  }
  for (auto& [name, gpu] : gpus_) {
    Time least = kNever;
    for (const auto& [id, a] : allocations_) {
      for (std::size_t i = 0; a.competes && i < a.gpus.size(); ++i) {
        if (a.gpus[i] == &gpu) least = std::min(least, a.served[i]);
      }
    }
    if (least != kNever) gpu.clock = std::max(gpu.clock, least);
  }
}

}  // namespace arbiter
