// Plays tenants of one GPU under a Schedule in virtual time, with the costs of a real machine:
// changes of contexts, wake-ups, and the time to submit. machine_test.cpp compares it with what was
// measured.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "native/arbiter/mailbox.h"
#include "native/arbiter/schedule.h"

namespace arbiter::test {

/// Of an H200's host (docs/decisions/2026-11-21-a-handover-costs-what-the-hardware-takes.md).
struct Costs {
  Time handover = 137 * kMicrosecond;  ///< of the GPU: from one context's work to another's
  Time wakeUp = 170 * kMicrosecond;    ///< of a thread
  Time early = 100 * kMicrosecond;     ///< work left when a worker says that it has drained
  Time message = 5 * kMicrosecond;     ///< between processes that spin
};

/// Submits a round of `work`, waits for its end and pauses. Without a pause, it keeps work queued.
struct Player {
  Time work = 185 * kMicrosecond, pause = 60 * kMicrosecond;
  Time issue = 60 * kMicrosecond;  ///< time to submit a round
  int weight = 50;
  bool lowLatency = false;
  Pace claims = Pace::unknown;  ///< instead of its true pace
  bool fidgets = false;         ///< submits again and again, so that it never seems to pause

  std::string id;
  Time left = 0, queued = 0;  ///< work of the round that is not submitted; work on the GPU
  Time done = 0;
  Time began = 0, next = 0;  ///< of this round, and of the next one
  Time submitted = 0, idleSince = 0, granted = 0, closed = 0;
  Time enters = 0, spinsUntil = 0, sleepsUntil = 0;  ///< of the thread that waits at the gate
  Time expected = 0;           ///< change of the grant, as the arbiter told it
  Time told = 0, noticed = 0;  ///< a pause that was told to a sleeping arbiter
  bool atGate = false, inRound = false, saidDrained = true, saidIdle = false;
  Pace pace = Pace::unknown;
  std::vector<Time> rounds;  ///< their durations
};

class Machine {
 public:
  static constexpr Time kStep = 5 * kMicrosecond;

  explicit Machine(std::vector<Player> all, const Timing& timing = {})
      : players(std::move(all)), schedule(timing) {
    for (Player& p : players) {
      p.id = std::string(1, static_cast<char>('a' + (&p - players.data())));
      p.next = now + 37 * kMicrosecond * (&p - players.data());
      schedule.put(p.id, {p.weight, Policy::burst, 0, {"gpu"}, p.lowLatency}, now);
    }
    run(200 * kMillisecond);  // until their paces are known
    for (Player& p : players) p.done = 0, p.rounds.clear();
    run(kPlayed);
  }

  std::vector<Player> players;
  Schedule schedule;
  Time now = kSecond;

  /// Its rate, relative to its rate alone.
  double part(const Player& p) const {
    const auto alone = static_cast<double>(std::max(p.work, p.issue) + p.pause);
    return static_cast<double>(p.done) / static_cast<double>(p.work) * alone / kPlayed;
  }
  double total() const {
    double sum = 0;
    for (const Player& p : players) sum += part(p);
    return sum;
  }
  /// In milliseconds, of the player that is worst off.
  double p99() const {
    Time worst = 0;
    for (Player p : players) {
      std::sort(p.rounds.begin(), p.rounds.end());
      if (!p.rounds.empty()) worst = std::max(worst, p.rounds[p.rounds.size() * 99 / 100]);
    }
    return static_cast<double>(worst) / kMillisecond;
  }
  /// Percent of the charged time.
  double share(std::size_t index) const {
    Time sum = 0;
    for (const Player& p : players) sum += charged(p);
    return 100.0 * static_cast<double>(charged(players[index])) / static_cast<double>(sum);
  }

 private:
  static constexpr Time kPlayed = 2 * kSecond;

  Grant grant(const Player& p) const { return schedule.order(p.id).grant; }
  Time charged(const Player& p) const {
    return schedule.use(p.id).granted + schedule.use(p.id).overrun;
  }

  void run(Time length) {
    for (const Time end = now + length; now < end; now += kStep) {
      bool changed = now >= schedule.deadline();
      for (Player& p : players) changed = submit(p) || changed;
      if (changed) decide();
      execute();
      changed = false;
      for (Player& p : players) changed = answer(p) || changed;
      if (changed) decide();
    }
  }

  void decide() {
    for (const Order& order : schedule.advance(now)) {
      Player& p = players[static_cast<std::size_t>(order.id[0] - 'a')];
      if (order.grant == Grant::closed) {
        p.saidDrained = false;
        p.closed = now;
        if (p.atGate) schedule.setDemand(p.id, Demand::waiting, now);
        continue;
      }
      p.saidIdle = false;
      p.granted = now;
      p.enters = now + costs_.message + std::clamp<Time>(p.sleepsUntil - now, 0, costs_.wakeUp);
    }
    for (Player& p : players) p.expected = schedule.expected(p.id);
  }

  /// As Gate::awaitChange(): a thread at the gate is awake around the expected change only.
  void waitAtGate(Player& p) {
    if (!std::exchange(p.atGate, true)) {
      schedule.setDemand(p.id, Demand::waiting, now);
      p.spinsUntil = now + 600 * kMicrosecond;
    }
    if (now < std::max(p.sleepsUntil, p.spinsUntil)) return;
    constexpr auto kBefore = static_cast<Time>(kWakeUpNanoseconds);
    if (p.expected == 0 || now >= p.expected + 4 * kMillisecond)
      p.sleepsUntil = now + kMillisecond + costs_.wakeUp;
    else if (now + kBefore < p.expected)
      p.sleepsUntil = std::min(p.expected - kBefore, now + kMillisecond) + costs_.wakeUp;
  }

  /// -most to most, deterministic.
  Time jitter(Time most) {
    random_ = random_ * 1664525u + 1013904223u;
    return static_cast<Time>(random_ >> 16) % (2 * most + 1) - most;
  }

  bool begins(Player& p) {
    if (p.left > 0) return true;
    if (p.pause > 0 ? p.inRound || now < p.next : p.queued > p.work) return false;
    p.left = p.work;
    if (p.pause > 0) p.left += jitter(p.work / 20 / kStep) * kStep;
    p.began = now;
    return p.inRound = true;
  }

  /// True if the tenant has told the arbiter something.
  bool submit(Player& p) {
    if (!begins(p)) return false;
    const bool waited = p.atGate;
    if (grant(p) == Grant::closed) return waitAtGate(p), !waited;
    if (waited && now < p.enters) return false;
    p.atGate = false;
    p.submitted = now;
    const Time piece = std::min(p.left, std::max(p.work * kStep / std::max(p.issue, kStep), kStep));
    p.left -= piece;
    p.queued += piece;
    if (p.pace == Pace::unknown && grant(p) == Grant::window) p.pace = Pace::steady;
    if (!std::exchange(p.saidIdle, false)) return false;
    schedule.setDemand(p.id, Demand::busy, now);
    return true;
  }

  /// The GPU runs the work of one context until it has none left, then changes.
  void execute() {
    if (now < changes_) return;
    if (holder_ == nullptr || holder_->queued == 0) {
      const auto next = std::find_if(players.begin(), players.end(),
                                     [](const Player& p) { return p.queued > 0; });
      if (next != players.end()) holder_ = &*next, changes_ = now + costs_.handover;
      return;
    }
    Player& p = *holder_;
    const Time ran = std::min(p.queued, kStep);
    p.queued -= ran;
    p.done += ran;
    if (p.queued > 0 || p.left > 0) return;
    p.idleSince = now + kStep;
    if (p.pause == 0) return;
    if (grant(p) == Grant::window) p.pace = Pace::pausing;
    p.inRound = false;
    p.next = now + kStep + p.pause;
    p.rounds.push_back(now + kStep - p.began);
  }

  /// A sleeping arbiter sees a pause that is told to it, if it lasts.
  bool notices(Player& p) {
    if (schedule.isHandingOver(now)) return true;
    if (p.expected == 0 || now < p.expected) return false;
    if (p.told != p.submitted) p.noticed = now + costs_.wakeUp;
    p.told = p.submitted;
    return now >= p.noticed;
  }

  bool pauses(Player& p) {
    const bool waitsInside = p.left > 0 && p.atGate;
    return !p.fidgets && !waitsInside &&
           now - std::max(p.submitted, p.granted) >= static_cast<Time>(kPauseNanoseconds) &&
           notices(p) &&
           schedule.yieldsAt(p.id, now) >=
               (p.queued > 0 ? Yields::whileWorkRuns : Yields::atAnyPause);
  }

  /// What its worker says.
  bool answer(Player& p) {
    if (grant(p) == Grant::closed) {
      // A thread that was about to submit delays the answer.
      const bool inside = p.left > 0 && now < p.closed + costs_.wakeUp;
      if (p.saidDrained || p.queued > costs_.early || inside) return false;
      const Pace pace = std::exchange(p.pace, Pace::unknown);
      schedule.drained(p.id, p.claims == Pace::unknown ? pace : p.claims, now);
      return p.saidDrained = true;
    }
    if (p.saidIdle || p.atGate || grant(p) != Grant::window) return false;
    const bool gap = p.queued == 0 && p.left == 0 &&
                     now - std::max(p.idleSince, p.granted) >= static_cast<Time>(kGapNanoseconds);
    if (!gap && !pauses(p)) return false;
    schedule.setDemand(p.id, Demand::none, now);
    return p.saidIdle = true;
  }

  Costs costs_;
  Player* holder_ = nullptr;  ///< of the GPU
  Time changes_ = 0;          ///< until then the GPU changes contexts
  std::uint32_t random_ = 1;
};

}  // namespace arbiter::test
