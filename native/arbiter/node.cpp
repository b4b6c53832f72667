#include "native/arbiter/node.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "native/arbiter/mailbox_file.h"

namespace arbiter {

namespace {

void wakeAll(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

Node::~Node() {
  for (auto& [connection, worker] : workers_) dismiss(worker, connection);
}

void Node::put(const std::string& id, const Terms& terms, Time now) {
  table_.allocations[id] = terms;
  schedule_.put(id, terms, now);
}

bool Node::setLatency(const std::string& id, bool low, Time now) {
  const auto found = table_.allocations.find(id);
  if (found == table_.allocations.end()) return false;
  found->second.lowLatency = low;
  schedule_.put(id, found->second, now);
  return true;
}

void Node::remove(const std::string& id, Time now) {
  table_.allocations.erase(id);
  std::erase_if(table_.workers, [&](const auto& entry) { return entry.second == id; });
  for (auto& [connection, worker] : workers_) {
    if (worker.allocation == id) dismiss(worker, connection);
  }
  schedule_.remove(id, now);
}

bool Node::setWorker(pid_t pid, const std::string& id, Time now) {
  if (!table_.allocations.contains(id)) return false;
  table_.workers[pid] = id;
  for (auto& [connection, worker] : workers_) {
    if (worker.pid != pid || worker.allocation == id) continue;
    if (worker.mailbox == nullptr)
      introduce(connection, worker, now);
    else
      dismiss(worker, connection);  // the pid now belongs to another process
  }
  return true;
}

void Node::gone(pid_t pid, Time now) {
  table_.workers.erase(pid);
  for (auto& [connection, worker] : workers_) {
    if (worker.pid != pid) continue;
    const std::string id = worker.allocation;
    measureOpen(id, now);  // its final values
    dismiss(worker, connection);
    observe(id, now);
  }
}

void Node::replace(const Table& table, Time now) {
  const Table before = table_;
  for (const auto& [id, terms] : before.allocations) {
    if (!table.allocations.contains(id)) remove(id, now);
  }
  for (const auto& [pid, id] : before.workers) {
    if (!table.workers.contains(pid)) gone(pid, now);
  }
  for (const auto& [id, terms] : table.allocations) put(id, terms, now);
  for (const auto& [pid, id] : table.workers) setWorker(pid, id, now);
}

void Node::join(int connection, pid_t pid, Time now) {
  Worker& worker = workers_[connection];
  worker.pid = pid;
  if (table_.workers.contains(pid)) introduce(connection, worker, now);
}

void Node::introduce(int connection, Worker& worker, Time now) {
  const int file = createMailbox(worker.mailbox);
  if (file < 0) {
    shutdown(connection, SHUT_RDWR);  // no memory; the worker connects again
    return;
  }
  worker.allocation = table_.workers[worker.pid];
  const Order order = schedule_.order(worker.allocation);
  worker.word = nextWord(0, order.grant);
  worker.told = now;
  worker.used = 0;
  worker.mailbox->grant = worker.word;
  worker.mailbox->idleSince = static_cast<std::uint64_t>(now);  // idle until it submits something
  worker.mailbox->queueNanoseconds = static_cast<std::uint32_t>(order.queue);
  worker.mailbox->standby = order.standby ? 1 : 0;
  if (!sendMailbox(connection, file)) shutdown(connection, SHUT_RDWR);
  close(file);
  observe(worker.allocation, now);
}

/// Ends the worker's connection, which the server then notices. The worker continues without a
/// mailbox.
void Node::dismiss(Worker& worker, int connection) {
  if (worker.mailbox != nullptr) munmap(worker.mailbox, kMailboxBytes);
  worker.mailbox = nullptr;
  worker.allocation.clear();
  shutdown(connection, SHUT_RDWR);
}

void Node::leave(int connection, Time now) {
  const auto found = workers_.find(connection);
  if (found == workers_.end()) return;
  const std::string id = found->second.allocation;
  measureOpen(id, now);
  dismiss(found->second, connection);
  workers_.erase(found);
  observe(id, now);
}

void Node::look(int connection, Time now) {
  const auto found = workers_.find(connection);
  if (found != workers_.end()) observe(found->second.allocation, now);
}

bool Node::isStranger(int connection) const {
  const auto found = workers_.find(connection);
  return found != workers_.end() && found->second.mailbox == nullptr;
}

/// Combines the reports of an allocation's workers and passes them to the schedule.
void Node::observe(const std::string& id, Time now) {
  if (!table_.allocations.contains(id)) return;
  bool drained = true, waits = false, idle = true, unused = true, pauses = true, runs = false;
  Pace pace = Pace::unknown;
  for (auto& [connection, worker] : workers_) {
    if (worker.mailbox == nullptr || worker.allocation != id) continue;
    const Mailbox& said = *worker.mailbox;
    waits = waits || said.wants.load(std::memory_order_acquire) != 0;
    drained = drained && said.drained.load(std::memory_order_acquire) == worker.word;
    // one pausing worker suffices
    pace = std::max(pace, said.pace.load(std::memory_order_relaxed));
    const auto since = static_cast<Time>(said.idleSince.load(std::memory_order_acquire));
    // Work may end before it is seen here, so the cleared word shows that there was some.
    unused = unused && said.standby.load(std::memory_order_relaxed) != 0 && since > 0;
    // Threads that waited at the gate may not be awake yet. On a loaded machine that takes longer
    // than the gap.
    const bool late = said.wants.load(std::memory_order_relaxed) != 0;
    const Time gap = static_cast<Time>(late ? kLateNanoseconds : kGapNanoseconds);
    const auto last = static_cast<Time>(said.submittedAt.load(std::memory_order_relaxed));
    const bool rests = since > 0 && now - std::max(since, worker.told) >= gap;
    idle = idle && rests;
    // A finished wait is said before the worker's gate has seen that the work has ended.
    const auto waited = static_cast<Time>(said.waitedAt.load(std::memory_order_relaxed));
    runs = runs || (since == 0 && waited <= last);
    const bool submitsNothing =
        !late && last > 0 &&
        now - std::max(last, worker.told) >= static_cast<Time>(kPauseNanoseconds);
    pauses = pauses && (rests || submitsNothing);
    schedule_.recorded(
        id, std::clamp<Time>(static_cast<Time>(said.timedRecord.load(std::memory_order_relaxed)), 0,
                             now));
  }
  const Order order = schedule_.order(id);
  switch (order.grant) {
    case Grant::closed:
      schedule_.setDemand(id, waits ? Demand::waiting : Demand::none, now);
      if (drained) schedule_.drained(id, pace, now);
      break;
    case Grant::window:
      if (pauses && !idle) {
        const Yields yields = schedule_.yieldsAt(id, now);
        idle = yields == Yields::atAnyPause || (yields == Yields::whileWorkRuns && runs);
      }
      schedule_.setDemand(id, (order.standby ? unused : idle) ? Demand::none : Demand::busy, now);
      break;
    case Grant::open: break;
  }
}

void Node::update(Time now) {
  for (const auto& [id, terms] : table_.allocations) {
    const Grant grant = schedule_.order(id).grant;
    if (grant == Grant::window) observe(id, now);  // it may be idle, or have recorded a timed event
    if (grant == Grant::open) measureOpen(id, now);
    if (grant == Grant::closed) countContexts(id, now);
  }
  for (auto orders = schedule_.advance(now); !orders.empty(); orders = schedule_.advance(now)) {
    for (const Order& order : orders) {
      for (auto& [connection, worker] : workers_) {
        if (worker.mailbox != nullptr && worker.allocation == order.id)
          tell(connection, worker, order, now);
      }
      if (order.grant == Grant::closed) observe(order.id, now);  // without a worker, nothing drains
    }
  }
  for (auto& [connection, worker] : workers_) {
    if (worker.mailbox == nullptr) continue;
    worker.mailbox->expected.store(
        static_cast<std::uint64_t>(schedule_.expected(worker.allocation)),
        std::memory_order_relaxed);
    reserve(worker, schedule_.reservation(worker.allocation));
    endOverdue(connection, worker);
    const Terms& terms = table_.allocations.at(worker.allocation);
    const bool limited = terms.policy == Policy::fixed && terms.weight < 100;
    // Sessions share the allocation's part equally, because without the arbiter they do not know of
    // each other.
    const int share = limited ? terms.weight * 10'000 / workersOf(worker.allocation) : 0;
    worker.mailbox->shareWithoutArbiter.store(static_cast<std::uint32_t>(share),
                                              std::memory_order_relaxed);
    worker.mailbox->outranks.store(schedule_.outranks(worker.allocation) ? 1 : 0,
                                   std::memory_order_relaxed);
  }
}

void Node::countContexts(const std::string& id, Time now) {
  int contexts = 0;
  for (const auto& [connection, worker] : workers_) {
    if (worker.mailbox == nullptr || worker.allocation != id ||
        worker.mailbox->drained.load(std::memory_order_acquire) == worker.word)
      continue;
    constexpr std::uint32_t kMost = 1024;  // more than fit a GPU
    contexts += static_cast<int>(
        std::clamp(worker.mailbox->busyContexts.load(std::memory_order_relaxed), 1u, kMost));
  }
  schedule_.setContexts(id, contexts, now);
}

int Node::workersOf(const std::string& id) const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return entry.second.mailbox != nullptr && entry.second.allocation == id;
  }));
}

/// Tells a worker once per closed gate that its work is overdue. Sessions of the allocation without
/// running work continue.
void Node::endOverdue(int connection, Worker& worker) {
  const Time overrun = schedule_.overdue(worker.allocation);
  if (overrun == 0 || worker.ended == worker.word ||
      worker.mailbox->drained.load(std::memory_order_acquire) == worker.word)
    return;
  worker.ended = worker.word;
  worker.mailbox->overdue.store(static_cast<std::uint32_t>(std::max<Time>(overrun / kSecond, 1)),
                                std::memory_order_release);
  send(connection, "g", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// Sets `reservedUntil` last, so that no partial reservation is in effect.
void Node::reserve(Worker& worker, const Reservation& reservation) {
  if (worker.reservation == reservation) return;
  worker.reservation = reservation;
  Mailbox& mailbox = *worker.mailbox;
  mailbox.reservedUntil.store(0, std::memory_order_release);
  mailbox.longestHeld.store(
      static_cast<std::uint32_t>(std::min<Time>(reservation.longest, kSecond)),
      std::memory_order_release);
  mailbox.reservedFrom.store(static_cast<std::uint64_t>(reservation.from),
                             std::memory_order_release);
  mailbox.reservedUntil.store(static_cast<std::uint64_t>(reservation.until),
                              std::memory_order_release);
}

void Node::tell(int connection, Worker& worker, const Order& order, Time now) {
  worker.mailbox->queueNanoseconds.store(static_cast<std::uint32_t>(order.queue),
                                         std::memory_order_relaxed);
  worker.mailbox->standby.store(order.standby ? 1 : 0, std::memory_order_relaxed);
  const Grant before = grantOf(worker.word);
  if (before == order.grant) return;
  worker.word = nextWord(worker.word, order.grant);
  worker.told = now;
  worker.mailbox->grant.store(worker.word, std::memory_order_seq_cst);
  wakeAll(worker.mailbox->grant);
  // The worker's gate thread may sleep while the gate is open; wake it.
  if (order.grant == Grant::closed || before == Grant::open)
    send(connection, "g", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Node::measureOpen(const std::string& id, Time now) {
  Time used = 0;
  for (auto& [connection, worker] : workers_) {
    if (worker.mailbox == nullptr || worker.allocation != id) continue;
    const std::uint64_t said = worker.mailbox->used.load(std::memory_order_relaxed);
    used += static_cast<Time>(std::min(said - worker.used, static_cast<std::uint64_t>(now)));
    worker.used = said;
  }
  schedule_.used(id, used, now);
}

std::map<std::string, TimeUse> Node::figures(Time now) {
  update(now);
  std::map<std::string, TimeUse> all;
  for (const auto& [id, terms] : table_.allocations) {
    all[id] = schedule_.use(id);
  }
  return all;
}

}  // namespace arbiter
