#include "native/arbiter/schedule.h"

#include <algorithm>

namespace arbiter {

void Schedule::put(const std::string& id, const Terms& terms, Time now) {
  settle(now);
  Allocation& a = allocations_[id];
  if (!a.id.empty() && a.terms.gpus != terms.gpus) {
    detach(a);
    a.stage = Stage::closed;
  }
  a.id = id;
  a.terms = terms;
  if (a.gpus.empty()) attach(a);
  if (a.told.id.empty()) a.tokens = leastTokens(a);
  if (a.told.id.empty()) a.told = {id, Grant::closed, timing_.queue};
}

void Schedule::remove(const std::string& id, Time now) {
  settle(now);
  if (Allocation* a = find(id)) detach(*a);
  allocations_.erase(id);
}

void Schedule::attach(Allocation& a) {
  for (const std::string& name : a.terms.gpus) {
    Gpu& gpu = gpus_[name];
    ++gpu.users;
    a.gpus.push_back(&gpu);
    a.served.push_back(gpu.clock);
  }
}

void Schedule::detach(Allocation& a) {
  for (Gpu* gpu : a.gpus) --gpu->users;
  a.gpus.clear();
  a.served.clear();
  std::erase_if(gpus_, [](const auto& entry) { return entry.second.users == 0; });
}

Schedule::Allocation* Schedule::find(const std::string& id) {
  const auto found = allocations_.find(id);
  return found == allocations_.end() ? nullptr : &found->second;
}

void Schedule::setDemand(const std::string& id, Demand demand, Time now) {
  settle(now);
  Allocation* a = find(id);
  if (a == nullptr) return;
  if (a->stage == Stage::standby && demand == Demand::busy)
    demand = Demand::waiting;  // for its own window
  const bool inside = a->stage == Stage::window || a->stage == Stage::open;
  if (inside ? demand == Demand::waiting : demand == Demand::busy) return;
  if (demand == Demand::waiting && a->demand != Demand::waiting) a->since = now;
  if (demand == Demand::none)
    a->rhythm.left(now);
  else
    a->rhythm.came(now);
  a->demand = demand;
}

void Schedule::drained(const std::string& id, Pace pace, Time now) {
  settle(now);
  Allocation* a = find(id);
  if (a != nullptr) a->contexts = 1;
  if (a == nullptr || (a->stage != Stage::draining && a->stage != Stage::overrunning)) return;
  learnDrain(*a, true, now);
  learnPace(*a, pace);
  a->stage = Stage::closed;
  a->overrun = 0;
}

void Schedule::setContexts(const std::string& id, int contexts, Time now) {
  settle(now);
  if (Allocation* a = find(id)) a->contexts = std::max(contexts, 1);
}

void Schedule::recorded(const std::string& id, Time when) {
  if (Allocation* a = find(id)) a->lastRecord = std::max(a->lastRecord, when);
}

void Schedule::used(const std::string& id, Time used, Time now) {
  Allocation* a = find(id);
  if (a == nullptr || a->stage != Stage::open) return;
  const Time counted = std::min(used, now - a->uncounted);
  a->use.granted += counted;
  a->uncounted = std::max(a->uncounted + counted, now - timing_.sampling);
}

std::vector<Order> Schedule::advance(Time now) {
  settle(now);
  endStages(now);
  rank(now);
  compete();
  for (auto& [id, a] : allocations_) {
    if (a.stage == Stage::window) shorten(a);
    if ((a.stage == Stage::window || a.stage == Stage::open) && mustYield(a, now)) continue;
    if (a.stage == Stage::window && now >= a.end) renew(a, isDue(a), now);
  }
  grantAll(now);
  compete();
  for (auto& [id, a] : allocations_) standBy(a, now);
  for (auto& [id, a] : allocations_) {
    if (a.stage != Stage::window || limited(a) || contended(a, now)) continue;
    a.stage = Stage::open;
    a.uncounted = now;
    // Earlier work may have ended unseen, so later work has half of the limit at least.
    a.overrun = std::min(a.overrun, timing_.overrunLimit / 2);
  }
  std::vector<Order> orders = tell();
  deadline_ = kNever;
  for (const auto& [id, a] : allocations_) deadline_ = std::min(deadline_, nextChange(a, now));
  return orders;
}

/// Ends drains that timed out.
void Schedule::endStages(Time now) {
  for (auto& [id, a] : allocations_) {
    if (a.stage == Stage::draining && now >= a.end) {
      a.stage = Stage::overrunning;
    }
  }
}

bool Schedule::overlaps(const Allocation& a, const Allocation& b) {
  return std::any_of(a.gpus.begin(), a.gpus.end(), [&](Gpu* gpu) {
    return std::find(b.gpus.begin(), b.gpus.end(), gpu) != b.gpus.end();
  });
}

/// Whether it waits and may start once its GPUs are free.
bool Schedule::waits(const Allocation& a) const {
  return a.demand == Demand::waiting && a.stage != Stage::window && a.stage != Stage::open &&
         hasTokens(a) && !isHeld(a);
}

/// Whether it gets no turn until its work has ended, or it is alone. Work that it adds in its turns
/// would hide that earlier work does not end, so the second half of the limit passes without any.
bool Schedule::isHeld(const Allocation& a) const {
  return timing_.overrunLimit > 0 && a.stage == Stage::overrunning &&
         a.overrun >= timing_.overrunLimit / 2 && contended(a, settled_);
}

/// Whether its running work may wait for work behind the gate, which its next turn would admit.
/// Peer kernels on several GPUs may have been split by an open gate, which does not count work, or
/// by another process's gate. The charge for such a kernel would delay the turn that ends it. The
/// required overrun doubles with each drain that timed out. On one GPU it is longer, because that
/// is much rarer: a kernel may wait for a copy.
bool Schedule::mayWaitForItself(const Allocation& a) const {
  return a.stage == Stage::overrunning && a.demand == Demand::waiting &&
         settled_ - a.closed >= (a.gpus.size() > 1 ? timing_.parted : timing_.stuck) << a.inVain;
}

/// The order of turns: the guarantee beside higher priorities, priority, then mayWaitForItself(),
/// then least virtual time by level, then longest wait.
bool Schedule::before(const Allocation& a, const Allocation& b) const {
  if (const bool due = isDue(a); due != isDue(b)) return due;
  if (a.terms.priority != b.terms.priority) return a.terms.priority > b.terms.priority;
  if (const bool parted = mayWaitForItself(a); parted != mayWaitForItself(b)) return parted;
  const Time levelA = levelOf(a), levelB = levelOf(b);
  return levelA != levelB ? levelA < levelB : a.since < b.since;
}

/// Closes a holder whose time is over, or that another allocation outranks. True if it did.
bool Schedule::mustYield(Allocation& holder, Time now) {
  if (now >= holder.end) holder.since = now;  // from now on it waits for its next window
  if (limited(holder) && (holder.stage == Stage::open || holder.tokens <= 0))
    return close(holder, false, now), true;
  for (const auto& [id, other] : allocations_) {
    if (&other == &holder || !waits(other) || !overlaps(holder, other)) continue;
    const bool urgent = other.terms.priority > holder.terms.priority && !isGuaranteed(holder, now);
    if (holder.stage == Stage::open && other.terms.priority < holder.terms.priority) {
      // The holder has priority, so it keeps its grant; from now on it is measured.
      holder.stage = Stage::window;
      renew(holder, false, now);
    }
    const bool over = now >= holder.end && before(other, holder) && !keptForRecords(holder, now);
    if (holder.stage == Stage::open || urgent || over || holder.demand == Demand::none)
      return close(holder, urgent, now), true;
  }
  return false;
}

/// Extends a window once if two timed events may be close to its end, because a program may be
/// measuring the time between them.
bool Schedule::keptForRecords(Allocation& holder, Time now) const {
  const Time recorded = std::min(holder.lastRecord, now);
  if (!holder.extended && now - recorded < timing_.recordPair) {
    holder.extended = true;
    holder.end = recorded + timing_.recordPair;
  }
  return now < holder.end;
}

/// Starts the holder's next window without a pause, because no other allocation precedes it.
void Schedule::renew(Allocation& holder, bool due, Time now) {
  holder.guaranteed = due;
  const Time window = due ? guaranteedWindowOf(holder) : windowOf(holder);
  holder.end = now + std::min(window, tokensLast(holder));
  holder.leastEnd = std::min(holder.end, now + leastWindowOf(holder));
  holder.pauseFrom = now + std::min(untilPause(holder), kNever / 2);
  holder.extended = false;
  ++holder.use.windows;
}

/// Cuts a long window to its shortest length if an allocation that pauses waits. Long windows are
/// for competitors that all pause seldom.
void Schedule::shorten(Allocation& holder) {
  if (holder.extended) return;
  for (const auto& [id, other] : allocations_) {
    if (&other != &holder && waits(other) && !seldomPauses(other) && overlaps(holder, other))
      holder.end = std::min(holder.end, holder.leastEnd);
  }
}

void Schedule::close(Allocation& holder, bool urgent, Time now) {
  holder.stage = Stage::draining;
  holder.closed = now;
  holder.contexts = 1;
  holder.end = now + (urgent ? timing_.urgentDrain : patience(holder));
  holder.demand = Demand::none;
  holder.lastDemand = now;
}

/// Puts an idle allocation on standby if only lower priorities want its GPUs: they must yield
/// without a drain anyway, except in a guaranteed window. So it need not ask first, which takes
/// 0.17 ms (H200's host), more than a context switch.
void Schedule::standBy(Allocation& a, Time now) {
  const bool idle = a.demand == Demand::none &&
                    (a.stage == Stage::closed || a.stage == Stage::standby) && hasTokens(a);
  bool lower = a.stage == Stage::standby, others = false, held = false;
  for (const auto& [id, other] : allocations_) {
    if (&other == &a || !overlaps(a, other) || (!holds(other) && !waits(other))) continue;
    const bool yields = other.terms.priority < a.terms.priority && !isGuaranteed(other, now);
    (yields ? lower : others) = true;
    held = held || (!yields && holds(other));
  }
  if (idle && lower && !others) {
    a.stage = Stage::standby;
  } else if (a.stage == Stage::standby && (a.demand == Demand::none || held)) {
    a.stage = Stage::overrunning;  // it may have begun just now, so its end is not awaited
    a.closed = now;
    a.contexts = 1;
  }
}

void Schedule::grantAll(Time now) {
  for (auto& [name, gpu] : gpus_) {
    gpu.holder = nullptr;
    gpu.lentUntil = kNever;
  }
  std::vector<Allocation*> candidates;
  for (auto& [id, a] : allocations_) {
    for (Gpu* gpu : a.gpus) {
      if (holds(a)) gpu->holder = &a;
    }
    if (waits(a)) candidates.push_back(&a);
  }
  std::sort(candidates.begin(), candidates.end(),
            [this](const Allocation* a, const Allocation* b) { return before(*a, *b); });
  for (Allocation* a : candidates) {
    if (tryGrant(*a, now)) continue;
    // Its turn comes when the last of its GPUs is free. Until then the others may be lent, so that
    // none is idle.
    Time blocked = now;
    for (Gpu* gpu : a->gpus) {
      if (gpu->holder != nullptr && gpu->holder->stage == Stage::window)
        blocked = std::max(blocked, gpu->holder->end);
    }
    for (Gpu* gpu : a->gpus) gpu->lentUntil = std::min(gpu->lentUntil, blocked);
  }
}

bool Schedule::tryGrant(Allocation& a, Time now) {
  Time until = kNever;
  for (const Gpu* gpu : a.gpus) {
    if (gpu->holder != nullptr && gpu->holder != &a) return false;
    until = std::min(until, gpu->lentUntil);
  }
  if (until != kNever && until - now < timing_.shortestLoan) return false;
  grant(a, until, now);
  return true;
}

void Schedule::grant(Allocation& a, Time until, Time now) {
  if (a.stage == Stage::overrunning) learnDrain(a, false, now);
  const bool due = isDue(a);
  a.stage = Stage::window;
  a.contexts = 1;
  a.demand = Demand::busy;
  renew(a, due, now);
  a.end = std::min(a.end, until);
  for (Gpu* gpu : a.gpus) gpu->holder = &a;
}

bool Schedule::hadDemand(const Allocation& a, Time within, Time now) const {
  return a.demand != Demand::none || a.stage == Stage::draining || a.stage == Stage::overrunning ||
         now - a.lastDemand < within;
}

/// Whether another allocation wants the same GPU, or did recently.
bool Schedule::contended(const Allocation& a, Time now) const { return aloneFrom(a, now) > now; }

Time Schedule::queueOf(const Allocation& a) const {
  return a.outranked ? timing_.queueBesideHigher : timing_.queue;
}

Time Schedule::expected(const std::string& id) const {
  const auto found = allocations_.find(id);
  if (found == allocations_.end()) return 0;
  const Allocation& a = found->second;
  Time at = 0;
  for (const auto& [otherId, other] : allocations_) {
    if (&other == &a || !overlaps(a, other)) continue;
    if (a.stage == Stage::window && waits(other)) return endOf(a);
    if (!waits(a)) continue;
    if (waits(other) && before(other, a)) return 0;
    if (holds(other)) at = std::max(at, other.stage == Stage::window ? endOf(other) : settled_);
  }
  return at;
}

/// When the window is expected to end while another allocation waits.
Time Schedule::endOf(const Allocation& a) { return std::min(a.end, a.pauseFrom); }

/// Shares stay exact: nobody whose virtual time is ahead gets the rest of a window.
Yields Schedule::yieldsAt(const std::string& id, Time now) {
  const Allocation* a = find(id);
  if (a == nullptr || a->stage != Stage::window || now < a->pauseFrom) return Yields::never;
  settle(now);
  const bool due = std::any_of(allocations_.begin(), allocations_.end(), [&](const auto& entry) {
    const Allocation& other = entry.second;
    return &other != a && waits(other) && overlaps(other, *a) &&
           other.terms.priority == a->terms.priority && levelOf(other) <= levelOf(*a);
  });
  if (!due) return Yields::never;
  return now - a->pauseFrom < timing_.runningPause ? Yields::whileWorkRuns : Yields::atAnyPause;
}

/// Work that is held back must fit in afterwards. So the limit is half of the time between the last
/// end of higher-priority work and its next arrival.
Reservation Schedule::reservation(const std::string& id) const {
  const auto found = allocations_.find(id);
  if (found == allocations_.end()) return {};
  const Allocation& a = found->second;
  if (isGuaranteed(a, settled_)) return {};
  Reservation first;
  Time left = 0;
  for (const auto& [otherId, other] : allocations_) {
    if (other.terms.priority <= a.terms.priority || !overlaps(a, other)) continue;
    left = std::max(left, other.rhythm.lastLeft());
    const auto next = other.rhythm.next();
    if (next && next->until > settled_ && next->from < first.from && hasTokensBy(other, next->from))
      first = {next->from, next->until};
  }
  if (first.from == kNever) return {};
  first.longest = (first.from - left - timing_.reopening) / 2;
  return first.longest > 0 ? first : Reservation{};
}

bool Schedule::isHandingOver(Time now) const {
  return std::any_of(allocations_.begin(), allocations_.end(), [&](const auto& entry) {
    const Allocation& a = entry.second;
    if (a.stage == Stage::standby)
      return now - a.lastDemand < static_cast<Time>(kPromptNanoseconds);
    if (a.stage == Stage::draining) return now - a.closed < timing_.handover && wanted(a);
    if (a.stage != Stage::window || !wanted(a)) return false;
    constexpr Time kBefore = kWakeUpNanoseconds, kAfter = kGapNanoseconds;
    // A pause that does not come soon is awaited asleep.
    return a.end - now < kBefore || (a.pauseFrom - now < kBefore && now - a.pauseFrom < kAfter);
  });
}

bool Schedule::outranks(const std::string& id) const {
  const auto found = allocations_.find(id);
  return found != allocations_.end() &&
         std::any_of(allocations_.begin(), allocations_.end(), [&](const auto& entry) {
           return entry.second.terms.priority < found->second.terms.priority &&
                  overlaps(entry.second, found->second);
         });
}

/// Whether another allocation waits for its GPUs.
bool Schedule::wanted(const Allocation& a) const {
  return std::any_of(allocations_.begin(), allocations_.end(), [&](const auto& entry) {
    return &entry.second != &a && waits(entry.second) && overlaps(a, entry.second);
  });
}

Time Schedule::overdue(const std::string& id) const {
  const auto found = allocations_.find(id);
  const bool limited = found != allocations_.end() && timing_.overrunLimit > 0 &&
                       found->second.stage == Stage::overrunning;
  return limited && found->second.overrun >= timing_.overrunLimit ? found->second.overrun : 0;
}

/// Whether it overruns while another allocation uses its GPUs, or wants to. In a turn that it gets
/// meanwhile, it may still be the earlier work that runs.
bool Schedule::isInTheWay(const Allocation& a) const {
  return (a.stage == Stage::overrunning || (a.stage == Stage::window && a.overrun > 0)) &&
         std::any_of(allocations_.begin(), allocations_.end(), [&](const auto& entry) {
           return &entry.second != &a && entry.second.demand != Demand::none &&
                  overlaps(a, entry.second);
         });
}

Order Schedule::order(const std::string& id) const {
  const auto found = allocations_.find(id);
  return found == allocations_.end() ? Order{id, Grant::closed, timing_.queue} : found->second.told;
}

TimeUse Schedule::use(const std::string& id) const {
  const auto found = allocations_.find(id);
  return found == allocations_.end() ? TimeUse{} : found->second.use;
}

std::vector<Order> Schedule::tell() {
  std::vector<Order> orders;
  for (auto& [id, a] : allocations_) {
    const bool standby = a.stage == Stage::standby;
    const Grant grant = a.stage == Stage::open                ? Grant::open
                        : a.stage == Stage::window || standby ? Grant::window
                                                              : Grant::closed;
    const Order order{id, grant, queueOf(a), standby};
    if (order == a.told) continue;
    a.told = order;
    orders.push_back(order);
  }
  return orders;
}

/// From when on no other allocation counts as wanting its GPUs. kNever while one does.
Time Schedule::aloneFrom(const Allocation& a, Time now) const {
  Time alone = now;
  for (const auto& [id, other] : allocations_) {
    if (&other == &a || !overlaps(a, other)) continue;
    if (hadDemand(other, 0, now)) return kNever;
    const Time within =
        other.terms.priority > a.terms.priority ? timing_.contentionByHigher : timing_.contention;
    if (hadDemand(other, within, now)) alone = std::max(alone, other.lastDemand + within);
  }
  return alone;
}

/// Time of the next change caused by this allocation without further input.
Time Schedule::nextChange(const Allocation& a, Time now) const {
  Time next = kNever;
  if (a.stage == Stage::draining) next = a.end;
  if (timing_.overrunLimit > a.overrun && isInTheWay(a))
    next = now + timing_.overrunLimit - a.overrun;
  if (a.demand == Demand::waiting && !hasTokens(a)) {
    const Time missing = leastTokens(a) - a.tokens;
    next = std::min(next, now + std::max<Time>(missing * 100 / a.terms.weight, 1));
  }
  const bool held = a.demand == Demand::waiting && isHeld(a);
  if (held || (a.stage == Stage::window && !limited(a))) {
    const Time alone = aloneFrom(a, now);
    if (alone != kNever) next = std::min(next, std::max(alone, now + 1));
  }
  if (a.stage != Stage::window) return next;
  if (limited(a)) next = std::min(next, now + std::max<Time>(tokensLast(a), 1));
  if (isGuaranteed(a, now)) next = std::min(next, a.end);
  for (const auto& [id, other] : allocations_) {
    if (&other != &a && overlaps(a, other) && waits(other))
      next = std::min(next, std::max(now < a.pauseFrom ? endOf(a) : a.end, now + 1));
  }
  return next;
}

}  // namespace arbiter
