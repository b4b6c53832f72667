#include "wire/ticket.h"

#include "wire/barrier.h"
#include "wire/wait.h"

namespace wire {

namespace {

// A turn lasts as long as a driver call, some microseconds. Several threads may be before this one:
// 8 that launch kernels are 30 us (H200). Waking this thread takes as long as all their turns.
std::uint64_t turnSpinNanoseconds() { return hasProcessorsForSpinning() ? 100'000 : 20'000; }

}  // namespace

bool TicketTurn::settled(std::uint64_t ticket, bool shared) const {
  const std::uint64_t passed = barrier::observe(passed_);
  return (shared ? passed / kTicket >= ticket / kTicket : passed >= ticket) ||
         barrier::ended(stopped_);
}

TicketTurn::Slot& TicketTurn::slotOf(std::uint64_t ticket, bool shared) {
  const std::uint64_t turn = ticket / kTicket;
  return shared ? shared_[turn % kSlots] : alone_[(turn + ticket) % kSlots];
}

bool TicketTurn::await(std::uint64_t ticket, bool shared) {
  if (ticket == 0) return !barrier::ended(stopped_);
  const auto ready = [&] { return settled(ticket, shared); };
  Slot& slot = slotOf(ticket, shared);
  for (bool settled = ready() || spinUntil(turnSpinNanoseconds(), ready, [] { return false; });
       !settled; settled = ready()) {
    const std::uint32_t word = barrier::observe(slot.word);
    barrier::joinSleepers(slot.sleepers);
    if (!ready()) futexWait(slot.word, word, kLongestSleepNanoseconds);
    barrier::leaveSleepers(slot.sleepers);
  }
  if (barrier::ended(stopped_)) return false;
  // All that entered have passed if `entered_` is the ticket, because `passed_` is not less.
  return shared ? (barrier::add(entered_, 1) & kAlone) == 0
                : barrier::advance(entered_, ticket, ticket | kAlone);
}

bool TicketTurn::stopped() const { return barrier::ended(stopped_); }

void TicketTurn::pass(std::uint64_t ticket, bool shared) {
  if (ticket == 0) return;
  if (shared)
    passShared(1);
  else if (barrier::advance(entered_, ticket | kAlone, ticket + kTicket))
    passed(kTicket);
}

void TicketTurn::passShared(std::uint64_t tickets) {
  if (tickets > 1) barrier::add(entered_, tickets - 1);
  passed(tickets);
}

void TicketTurn::passed(std::uint64_t tickets) {
  const std::uint64_t now = barrier::add(passed_, tickets);
  wakeSleepers(slotOf(now, false));
  if (now / kTicket != (now - tickets) / kTicket) wakeSleepers(slotOf(now, true));
}

void TicketTurn::stop() {
  barrier::end(stopped_);
  for (Slot& slot : alone_) wake(slot);
  for (Slot& slot : shared_) wake(slot);
}

void TicketTurn::wakeSleepers(Slot& slot) {
  if (barrier::sleepers(slot.sleepers) != 0) wake(slot);
}

void TicketTurn::wake(Slot& slot) {
  barrier::moveOn(slot.word);
  futexWakeAll(slot.word);
}

}  // namespace wire
