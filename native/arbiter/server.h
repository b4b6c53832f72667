// The arbiter's sockets: one thread, one epoll. A peer that violates the protocol, stays silent or
// sends too much loses only its own connection.
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
  Time linger = 60 * kSecond;  ///< time without a connection after which the arbiter ends
};

class Server {
 public:
  explicit Server(const Settings& settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Listens on the socket. Returns an error message, or an empty string.
  std::string listen();
  /// Serves until a signal arrives in `signals` (a signalfd), or no connection has existed for
  /// `linger`.
  void run(int signals);

 private:
  enum class Kind { unknown, control, worker };
  struct Connection {
    pid_t pid = 0;
    uid_t uid = 0;
    Kind kind = Kind::unknown;
    std::string in, out;
    Time until = kNever;  ///< deadline for its first line, or for its worker to be announced
    std::optional<Table> staged;  ///< table between `begin` and `commit`
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
