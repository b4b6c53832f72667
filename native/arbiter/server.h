// The arbiter's sockets: one thread, one epoll. A peer that sends nonsense, nothing, or too much loses its connection and nothing else.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "native/arbiter/node.h"
#include "native/arbiter/protocol.h"
#include "wire/wait.h"

namespace arbiter {

struct Settings {
  std::string socket;
  Timing timing;
  Time linger = 60 * kSecond;  ///< with nobody connected for so long it ends
};

class Server {
 public:
  explicit Server(const Settings& settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// A sentence when the socket cannot be served.
  std::string listen();
  /// Returns when a signal in `signals` (a signalfd) arrives, or nobody has been connected for a while.
  void run(int signals);

 private:
  enum class Kind { unknown, control, worker };
  struct Connection {
    pid_t pid = 0;
    uid_t uid = 0;
    Kind kind = Kind::unknown;
    std::string in, out;
    Time until = kNever;          ///< when it must have said what it is, or be known
    std::optional<Table> staged;  ///< between `begin` and `commit`
  };

  void accept(Time now);
  void refuseOne();
  bool mayStay(const ucred& peer) const;
  void ready(int file, std::uint32_t events, Time now);
  bool receive(int file, Connection& connection, Time now);
  bool refuseLength(int file, Connection& connection);
  bool begin(int file, Connection& connection, std::string_view line, Time now);
  void command(Connection& connection, std::string_view line, Time now);
  std::string apply(Connection& connection, const Command& command, Time now);
  std::string stage(Table& table, const Command& command);
  void sayFigures(Connection& connection, Time now);
  bool flush(int file, Connection& connection);
  void drop(int file, Time now);
  void dropLate(Time now);
  void arm(Time now);

  Settings settings_;
  Node node_;
  int epoll_ = -1, listener_ = -1, timer_ = -1, spare_ = -1;
  const bool mayStayAwake_ = wire::hasProcessorsForSpinning();
  std::map<int, Connection> connections_;
  Time aloneSince_ = 0;
  Time armed_ = kNever;
};

}  // namespace arbiter
