// State of a node: allocations, their workers, and the workers' mailboxes. The server owns the
// sockets; here they are only descriptors to write to.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "native/arbiter/mailbox.h"
#include "native/arbiter/schedule.h"

namespace arbiter {

/// Allocations and workers, as the proxy reports them.
struct Table {
  std::map<std::string, Terms> allocations;
  std::map<pid_t, std::string> workers;
};

class Node {
 public:
  explicit Node(const Timing& timing) : schedule_(timing) {}
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Sets the window of future grants.
  void setWindow(Time window) { schedule_.setWindow(window); }
  /// Maximum time that work may run on after its turn while others want the GPU. Then its sessions
  /// are told to end. 0: no limit.
  void setOverrunLimit(Time limit) { schedule_.setOverrunLimit(limit); }
  /// Percent of its share that an allocation keeps beside higher priorities.
  void setGuarantee(int percent) { schedule_.setGuarantee(percent); }
  void put(const std::string& id, const Terms& terms, Time now);
  /// False if the allocation does not exist.
  bool setLatency(const std::string& id, bool low, Time now);
  void remove(const std::string& id, Time now);
  /// False if the allocation does not exist.
  bool setWorker(pid_t pid, const std::string& id, Time now);
  void gone(pid_t pid, Time now);
  /// Replaces all allocations and workers by `table`. Those in both keep their accounts.
  void replace(const Table& table, Time now);

  /// Adds a worker's connection. It gets its mailbox as soon as its allocation is known.
  void join(int connection, pid_t pid, Time now);
  void leave(int connection, Time now);
  /// The worker has reported a change in its mailbox.
  void look(int connection, Time now);
  /// Whether the worker has no mailbox yet.
  bool isStranger(int connection) const;

  /// Runs the schedule and sends its decisions to the workers. Call it after every change, and at
  /// deadline().
  void update(Time now);
  Time deadline() const { return schedule_.deadline(); }
  /// Whether a handover of a GPU is near, so that the arbiter should not sleep.
  bool isHandingOver(Time now) const { return schedule_.isHandingOver(now); }

  /// Time used by each allocation.
  std::map<std::string, TimeUse> figures(Time now);

 private:
  struct Worker {
    pid_t pid = 0;
    std::string allocation;
    Mailbox* mailbox = nullptr;  ///< null: the worker's allocation is not known yet
    std::uint32_t word = 0;      ///< current grant word of the mailbox
    Time told = 0;               ///< when it was set
    Reservation reservation;     ///< current reservation of the mailbox
    std::uint64_t used = 0;      ///< `used` in the mailbox when it was last read
    std::uint32_t ended = 0;  ///< the grant word under which it was told that its work is overdue
  };

  void introduce(int connection, Worker& worker, Time now);
  void dismiss(Worker& worker, int connection);
  void tell(int connection, Worker& worker, const Order& order, Time now);
  void reserve(Worker& worker, const Reservation& reservation);
  void observe(const std::string& id, Time now);
  void measureOpen(const std::string& id, Time now);
  void countContexts(const std::string& id, Time now);
  void endOverdue(int connection, Worker& worker);
  int workersOf(const std::string& id) const;

  Schedule schedule_;
  Table table_;
  std::map<int, Worker> workers_;  ///< by connection's descriptor
};

}  // namespace arbiter
