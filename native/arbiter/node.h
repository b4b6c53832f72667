// What the arbiter knows of its node: allocations, the workers that belong to them, and their mailboxes. The sockets are the server's;
// here they are numbers to write to.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "native/arbiter/mailbox.h"
#include "native/arbiter/schedule.h"

namespace arbiter {

/// What the proxy says exists.
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

  /// Of grants from now on.
  void setWindow(Time window) { schedule_.setWindow(window); }
  void put(const std::string& id, const Terms& terms, Time now);
  void remove(const std::string& id, Time now);
  /// False when there is no such allocation.
  bool setWorker(pid_t pid, const std::string& id, Time now);
  void gone(pid_t pid, Time now);
  /// Makes `table` all there is; what stays keeps its account.
  void replace(const Table& table, Time now);

  /// A worker's connection: it gets its mailbox as soon as it is known whose it is.
  void join(int connection, pid_t pid, Time now);
  void leave(int connection, Time now);
  /// It has said that something in its mailbox is new.
  void look(int connection, Time now);
  /// Still without a mailbox.
  bool isStranger(int connection) const;

  /// Lets the schedule decide and tells the workers; after every change, and at deadline().
  void update(Time now);
  Time deadline() const { return schedule_.deadline(); }
  /// A GPU is about to go from one to the next: not the moment to sleep.
  bool isHandingOver(Time now) const { return schedule_.isHandingOver(now); }

  /// Nanoseconds of every allocation.
  std::map<std::string, TimeUse> figures(Time now);

 private:
  struct Worker {
    pid_t pid = 0;
    std::string allocation;
    Mailbox* mailbox = nullptr;  ///< none: whose worker it is, is not known yet
    std::uint32_t word = 0;      ///< what the mailbox's grant was set to
    Time told = 0;               ///< when
    Reservation reservation;     ///< what stands in the mailbox
    std::uint64_t used = 0;      ///< what stood in it last
  };

  void introduce(int connection, Worker& worker, Time now);
  void dismiss(Worker& worker, int connection);
  void tell(int connection, Worker& worker, const Order& order, Time now);
  void reserve(Worker& worker, const Reservation& reservation);
  void observe(const std::string& id, Time now);
  void measureOpen(const std::string& id, Time now);

  Schedule schedule_;
  Table table_;
  std::map<int, Worker> workers_;  ///< by connection
};

}  // namespace arbiter
