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
/// The time that a first program may wait for its GPU: the kubelet and the API server are asked.
constexpr int kPatienceMs = 10'000;

/// A connection to gpu-proxy, which binds the grant of a container to its pod.
class Connection {
 public:
  explicit Connection(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    file_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file_ < 0) return;
    if (connect(file_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return;
    missing_ = errno != ECONNREFUSED;
    close(file_);
    file_ = -1;
  }
  ~Connection() {
    if (file_ >= 0) close(file_);
  }
  Connection(const Connection&) = delete;

  /// No gpu-proxy serves this path.
  bool missing() const { return missing_; }

  /// Waits for a step. True if gpu-proxy has said something: it refuses the program.
  bool refused() const {
    pollfd entry{.fd = file_, .events = POLLIN, .revents = 0};
    return poll(&entry, file_ < 0 ? 0 : 1, kStepMs) > 0;
  }

 private:
  int file_ = -1;
  bool missing_ = false;
};

bool complete(const std::optional<Page>& page) { return page && !page->pending; }

}  // namespace

std::optional<Page> awaitPage() {
  std::optional<Page> page = readPage();
  std::optional<Connection> connection;
  const std::string file = pagePath();
  const std::string socket = file.substr(0, file.rfind('.'));
  for (int waited = 0; !complete(page) && waited < kPatienceMs; waited += kStepMs) {
    if (!page && !connection) connection.emplace(socket);
    if (connection && connection->missing()) return {};
    if (connection && connection->refused()) {
      page = readPage();
      return complete(page) ? page : std::optional<Page>();
    }
    if (!connection) poll(nullptr, 0, kStepMs);
    page = readPage();
  }
  return complete(page) ? page : std::optional<Page>();
}

}  // namespace nvml
