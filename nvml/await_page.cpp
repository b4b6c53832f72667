// How nvmlInit waits for the page.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "nvml/page.h"

namespace nvml {

namespace {

constexpr int kStepMs = 10;
/// While gpu-proxy restarts, nobody listens. Later connections follow after this time.
constexpr int kReconnectMs = 250;
/// The time that a first program may wait for its GPU: the kubelet and the API server are asked.
constexpr int kPatienceMs = 10'000;

/// A connection to gpu-proxy, which binds the grant of a container to its pod. It sends nothing and
/// says so at once: gpu-proxy starts no worker for it.
class Connection {
 public:
  explicit Connection(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    file_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file_ < 0) return;
    missing_ = false;
    if (connect(file_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      shutdown(file_, SHUT_WR);
      return;
    }
    missing_ = errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR;
    disconnect();
  }
  ~Connection() { disconnect(); }
  Connection(const Connection&) = delete;

  /// No gpu-proxy serves this path.
  bool missing() const { return missing_; }

  bool open() const { return file_ >= 0; }

  /// Waits for a step. True if gpu-proxy has said something: it refuses the program. After the end
  /// of the connection, gpu-proxy has bound the grant, or has gone.
  bool refused() {
    pollfd entry{.fd = file_, .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, kStepMs) <= 0 || file_ < 0) return false;
    char byte = 0;
    const bool said = recv(file_, &byte, 1, MSG_DONTWAIT) > 0;
    if (!said) disconnect();
    return said;
  }

 private:
  void disconnect() {
    if (file_ >= 0) close(file_);
    file_ = -1;
  }

  int file_ = -1;
  bool missing_ = true;
};

bool complete(const std::optional<Page>& page) { return page && !page->pending; }

}  // namespace

std::optional<Page> awaitPage() {
  std::optional<Page> page = readPage();
  std::optional<Connection> connection;
  const std::string file = pagePath();
  const std::string socket = file.substr(0, file.rfind('.'));
  for (int waited = 0; !complete(page) && waited < kPatienceMs; waited += kStepMs) {
    if (!page && waited % kReconnectMs == 0 && !(connection && connection->open()))
      connection.emplace(socket);
    if (connection && connection->missing()) return {};
    if (!connection) poll(nullptr, 0, kStepMs);
    const bool refused = connection && connection->refused();
    page = readPage();
    if (refused) break;
  }
  return complete(page) ? page : std::optional<Page>();
}

}  // namespace nvml
