// Places of a session's calls in the order of submission, and a count of the calls that may change
// what is complete. Queries change nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "wire/ticket.h"

namespace interposer {

/// Thread-safe. What was noted at the place of a call holds while changes() equals the place's
/// count. So that no other call is missed, that of a place is never too high, and that of changes()
/// never too low. Both are exact while no other thread takes the place of a query.
class SubmissionOrder {
 public:
  struct Place {
    std::uint64_t ticket;   ///< wire/ticket.h
    std::uint64_t changes;  ///< tickets up to this one, less those of queries
  };

  Place take() { return placeOf(tickets_.take(), wire::kTicket); }
  Place takeShared() { return placeOf(tickets_.takeShared(), 1); }
  Place takeQuery() {
    begun_.fetch_add(1, std::memory_order_relaxed);
    const Place place = placeOf(tickets_.take(), wire::kTicket);
    counted_.fetch_add(1, std::memory_order_release);
    return place;
  }
  /// Takes the place right behind so many changes; none if there were more.
  std::optional<Place> takeBehind(std::uint64_t changes) {
    for (;;) {
      const std::uint64_t queries = counted_.load(std::memory_order_acquire);
      const std::uint64_t ticket = tickets_.next();
      if (ticket - queries * wire::kTicket != changes) return std::nullopt;
      if (tickets_.takeAt(ticket)) return Place{ticket, changes + wire::kTicket};
    }
  }
  std::uint64_t changes() const {
    const std::uint64_t queries = counted_.load(std::memory_order_acquire);
    return tickets_.next() - queries * wire::kTicket;
  }

 private:
  Place placeOf(std::uint64_t ticket, std::uint64_t own) const {
    return {ticket, ticket + own - begun_.load(std::memory_order_relaxed) * wire::kTicket};
  }

  wire::TicketCounter tickets_;
  std::atomic<std::uint64_t> begun_{0};    ///< queries, each before it takes its ticket
  std::atomic<std::uint64_t> counted_{0};  ///< queries, each after it has taken its ticket
};

}  // namespace interposer
