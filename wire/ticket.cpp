#include "wire/ticket.h"

#include "wire/barrier.h"
#include "wire/wait.h"

namespace wire {

namespace {

// A turn lasts as long as a driver call, some microseconds. Several threads may be before this one:
// 8 that launch kernels are 30 us (H200). Waking this thread takes as long as all their turns.
std::uint64_t turnSpinNanoseconds() { return hasProcessorsForSpinning() ? 100'000 : 20'000; }

}  // namespace

bool TicketTurn::settled(std::uint64_t ticket) const {
  return barrier::observe(passed_) + 1 >= ticket || barrier::ended(stopped_);
}

bool TicketTurn::await(std::uint64_t ticket) {
  if (ticket == 0) return !barrier::ended(stopped_);
  const auto ready = [&] { return settled(ticket); };
  Slot& slot = slots_[ticket % kSlots];
  for (bool settled = ready() || spinUntil(turnSpinNanoseconds(), ready, [] { return false; });
       !settled; settled = ready()) {
    const std::uint32_t word = barrier::observe(slot.word);
    barrier::joinSleepers(slot.sleepers);
    if (!ready()) futexWait(slot.word, word, kLongestSleepNanoseconds);
    barrier::leaveSleepers(slot.sleepers);
  }
  // Fails for a ticket that was used or passed before, so two threads never have the turn together.
  return !barrier::ended(stopped_) && barrier::advance(taken_, ticket - 1);
}

bool TicketTurn::stopped() const { return barrier::ended(stopped_); }

void TicketTurn::pass(std::uint64_t ticket) {
  if (ticket == 0 || !barrier::advance(passed_, ticket - 1)) return;
  Slot& next = slots_[(ticket + 1) % kSlots];
  if (barrier::sleepers(next.sleepers) != 0) wake(next);
}

void TicketTurn::stop() {
  barrier::end(stopped_);
  for (Slot& slot : slots_) wake(slot);
}

void TicketTurn::wake(Slot& slot) {
  barrier::moveOn(slot.word);
  futexWakeAll(slot.word);
}

}  // namespace wire
