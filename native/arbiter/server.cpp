#include "native/arbiter/server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace arbiter {

namespace {

/// A worker needs one connection, or two if the end of the first has not been seen yet.
constexpr int kConnectionsOfAProcess = 4;
constexpr int kConnectionsOfAUser = 1024;  ///< for users other than the arbiter's
constexpr std::size_t kMostConnections = 8192;
constexpr Time kTimeToSayWhat = 5 * kSecond;
constexpr Time kTimeToBeKnown = 10 * kSecond;
constexpr std::size_t kLongestFirstLine = 32;
constexpr std::size_t kMostUnread = std::size_t{4} << 20;

Time monotonic() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

#ifndef SO_PASSRIGHTS
constexpr int SO_PASSRIGHTS = 83;  // missing in older headers
#endif

/// Refuses descriptors from peers: the last close of one may block. Accepted connections inherit
/// this. Kernels before Linux 6.16 ignore it.
void refuseDescriptors(int socket) {
  const int accepted = 0;
  setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &accepted, sizeof accepted);
}

bool address(const std::string& path, sockaddr_un& name) {
  name = {};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) return false;
  std::memcpy(name.sun_path, path.data(), path.size());
  return true;
}

}  // namespace

Server::Server(const Settings& settings) : settings_(settings), node_(settings.timing) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

Server::~Server() {
  for (auto& [file, connection] : connections_) close(file);
  for (const int file : {epoll_, listener_, timer_, spare_}) close(file);
}

/// Binds under a temporary name and renames it, so that a client never finds a socket that does not
/// listen.
std::string Server::listen() {
  sockaddr_un name;
  const std::string fresh = settings_.socket + ".new";
  if (!address(fresh, name))
    return "the path of the arbiter's socket, " + settings_.socket +
           ", is too long; use a shorter state directory";
  const auto failed = [&] {
    return "the arbiter cannot listen at " + settings_.socket + ": " + std::strerror(errno);
  };
  unlink(fresh.c_str());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  refuseDescriptors(listener_);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0)
    return failed();
  // Workers run as other users; the directory's permissions limit access.
  if (chmod(fresh.c_str(), 0666) != 0 || ::listen(listener_, 1024) != 0) return failed();
  if (rename(fresh.c_str(), settings_.socket.c_str()) != 0) return failed();
  return "";
}

void Server::run(int signals) {
  for (const int file : {listener_, timer_, signals}) {
    epoll_event wanted{EPOLLIN, {.fd = file}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &wanted);
  }
  aloneSince_ = monotonic();
  arm(aloneSince_);
  std::array<epoll_event, 64> events;
  for (;;) {
    const bool awake = mayStayAwake_ && node_.isHandingOver(monotonic());
    const int count = epoll_wait(epoll_, events.data(), events.size(), awake ? 0 : -1);
    const Time now = monotonic();
    for (int i = 0; i < count; ++i) {
      const int file = events[i].data.fd;
      if (file == signals) return;
      std::uint64_t expirations = 0;
      if (file == timer_) {
        [[maybe_unused]] const auto bytes = read(timer_, &expirations, sizeof expirations);
        armed_ = kNever;
      } else if (file == listener_) {
        accept(now);
      } else {
        ready(file, events[i].events, now);
      }
    }
    dropLate(now);
    if (connections_.empty() && now - aloneSince_ >= settings_.linger) return;
    node_.update(now);
    arm(now);
  }
}

void Server::accept(Time now) {
  for (int taken = 0; taken < 64; ++taken) {
    const int file = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (file < 0 && (errno == EMFILE || errno == ENFILE)) return refuseOne();
    if (file < 0) return;
    ucred peer{};
    socklen_t bytes = sizeof peer;
    epoll_event wanted{EPOLLIN, {.fd = file}};
    if (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || !mayStay(peer) ||
        epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &wanted) != 0) {
      close(file);
      continue;
    }
    Connection& connection = connections_[file];
    connection.pid = peer.pid;
    connection.uid = peer.uid;
    connection.until = now + kTimeToSayWhat;
  }
}

/// Out of descriptors: frees a spare one to accept and close the connection, so that epoll does not
/// report it for ever.
void Server::refuseOne() {
  close(spare_);
  close(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
  spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool Server::mayStay(const ucred& peer) const {
  int ofProcess = 0, ofUser = 0;
  for (const auto& [file, connection] : connections_) {
    ofProcess += connection.pid == peer.pid ? 1 : 0;
    ofUser += connection.uid == peer.uid ? 1 : 0;
  }
  const bool own = peer.uid == geteuid();
  return ofProcess < kConnectionsOfAProcess && (own || ofUser < kConnectionsOfAUser) &&
         connections_.size() < kMostConnections;
}

void Server::ready(int file, std::uint32_t events, Time now) {
  const auto found = connections_.find(file);
  if (found == connections_.end()) return;  // already dropped
  Connection& connection = found->second;
  const bool alive = (events & EPOLLIN) == 0 || receive(file, connection, now);
  if (!alive || (events & (EPOLLERR | EPOLLHUP)) != 0 || !flush(file, connection)) drop(file, now);
}

/// False if the connection has ended.
bool Server::receive(int file, Connection& connection, Time now) {
  std::array<char, 65536> bytes;
  const ssize_t count =
      read(file, bytes.data(), connection.kind == Kind::control ? bytes.size() : 256);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  if (connection.kind == Kind::worker) return node_.look(file, now), true;
  connection.in.append(bytes.data(), static_cast<std::size_t>(count));
  std::size_t at = 0;
  for (std::size_t end; (end = connection.in.find('\n', at)) != std::string::npos; at = end + 1) {
    const auto line = std::string_view(connection.in).substr(at, end - at);
    if (line.size() > kLongestLine) return refuseLength(file, connection);
    if (connection.kind == Kind::control)
      command(connection, line, now);
    else if (connection.kind == Kind::unknown && !begin(file, connection, line, now))
      return false;
  }
  connection.in.erase(0, at);
  if (connection.kind == Kind::unknown) return connection.in.size() <= kLongestFirstLine;
  return connection.in.size() <= kLongestLine || refuseLength(file, connection);
}

bool Server::refuseLength(int file, Connection& connection) {
  connection.out += "error a line is longer than " + std::to_string(kLongestLine) + " bytes\n";
  flush(file, connection);
  return false;
}

/// The first line names the kind of the peer. Any other peer gets no answer.
bool Server::begin(int file, Connection& connection, std::string_view line, Time now) {
  if (line == "control 1" && connection.uid == geteuid()) {
    connection.kind = Kind::control;
    connection.until = kNever;
  } else if (line == "worker 1") {
    connection.kind = Kind::worker;
    connection.until = now + kTimeToBeKnown;
    node_.join(file, connection.pid, now);
  }
  return connection.kind != Kind::unknown;
}

void Server::command(Connection& connection, std::string_view line, Time now) {
  Command parsed;
  std::string sentence = parse(line, parsed);
  if (sentence.empty()) sentence = apply(connection, parsed, now);
  if (!sentence.empty()) connection.out += "error " + sentence + '\n';
}

std::string Server::apply(Connection& connection, const Command& command, Time now) {
  switch (command.kind) {
    case Command::Kind::begin: return connection.staged.emplace(), "";
    case Command::Kind::commit:
      if (!connection.staged) return "\"commit\" without \"begin\"";
      node_.replace(*connection.staged, now);
      return connection.staged.reset(), "";
    case Command::Kind::window: return node_.setWindow(command.microseconds * kMicrosecond), "";
    case Command::Kind::overrun: return node_.setOverrunLimit(command.seconds * kSecond), "";
    case Command::Kind::guarantee: return node_.setGuarantee(command.percent), "";
    case Command::Kind::figures: return sayFigures(connection, now), "";
    default: break;
  }
  if (connection.staged) return stage(*connection.staged, command);
  switch (command.kind) {
    case Command::Kind::allocation: return node_.put(command.id, command.terms, now), "";
    case Command::Kind::remove: return node_.remove(command.id, now), "";
    case Command::Kind::gone: return node_.gone(command.pid, now), "";
    default: break;
  }
  const bool known = command.kind == Command::Kind::latency
                         ? node_.setLatency(command.id, command.terms.lowLatency, now)
                         : node_.setWorker(command.pid, command.id, now);
  return known ? "" : "there is no allocation " + command.id;
}

std::string Server::stage(Table& table, const Command& command) {
  switch (command.kind) {
    case Command::Kind::allocation: return table.allocations[command.id] = command.terms, "";
    case Command::Kind::remove: return table.allocations.erase(command.id), "";
    case Command::Kind::gone: return table.workers.erase(command.pid), "";
    default: break;
  }
  const auto found = table.allocations.find(command.id);
  if (found == table.allocations.end())
    return "there is no allocation " + command.id + " in this table";
  if (command.kind == Command::Kind::latency)
    found->second.lowLatency = command.terms.lowLatency;
  else
    table.workers[command.pid] = command.id;
  return "";
}

void Server::sayFigures(Connection& connection, Time now) {
  for (const auto& [id, use] : node_.figures(now)) {
    connection.out += "figures " + id + ' ' + std::to_string(use.granted) + ' ' +
                      std::to_string(use.waited) + ' ' + std::to_string(use.overrun) + ' ' +
                      std::to_string(use.windows) + '\n';
  }
  connection.out += "end\n";
}

/// Writes as much as the peer accepts. False if the peer is gone, or does not read.
bool Server::flush(int file, Connection& connection) {
  if (connection.out.empty()) return true;
  const ssize_t count =
      send(file, connection.out.data(), connection.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
  if (count > 0) connection.out.erase(0, static_cast<std::size_t>(count));
  epoll_event wanted{EPOLLIN | (connection.out.empty() ? 0u : static_cast<unsigned>(EPOLLOUT)),
                     {.fd = file}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, file, &wanted);
  return connection.out.size() <= kMostUnread;
}

void Server::drop(int file, Time now) {
  node_.leave(file, now);
  connections_.erase(file);
  close(file);
  if (connections_.empty()) aloneSince_ = now;
}

/// Drops peers without a first line, and workers that the proxy has not announced in time. A worker
/// connects again.
void Server::dropLate(Time now) {
  std::vector<int> late;
  for (auto& [file, connection] : connections_) {
    if (connection.kind == Kind::worker && !node_.isStranger(file)) connection.until = kNever;
    if (now >= connection.until) late.push_back(file);
  }
  for (const int file : late) drop(file, now);
}

void Server::arm(Time now) {
  Time next = node_.deadline();
  if (next != kNever && mayStayAwake_)
    next = std::max(now, next - static_cast<Time>(kWakeUpNanoseconds));
  for (const auto& [file, connection] : connections_) next = std::min(next, connection.until);
  if (connections_.empty()) next = std::min(next, aloneSince_ + settings_.linger);
  if (next == armed_) return;
  armed_ = next;
  itimerspec when{};
  if (next != kNever) {
    next = std::max(next, now + 1);
    when.it_value = {static_cast<time_t>(next / kSecond), static_cast<long>(next % kSecond)};
  }
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace arbiter
