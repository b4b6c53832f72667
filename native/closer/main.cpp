// nvidia-virtual-closer: holds a copy of each listening socket and connection of gpu-proxy for
// longer than gpu-proxy does. The last close of a socket frees the descriptors that a client has
// sent, and a client can make that block. So the last close happens here, where nothing waits for
// it. README.md describes the protocol.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "native/closer/disposal.h"
#include "wire/received_files.h"

namespace {

constexpr int kControl = 3;
constexpr std::size_t kMostBytes = 16 * 1024;

enum class Kind : std::uint32_t { hold = 1, close = 2, answer = 3 };

struct Header {
  Kind kind;
  std::uint32_t id;
};

struct Packet {
  Header header;
  std::array<std::byte, kMostBytes> rest;
};

/// Receives a packet. Returns the bytes after the header, or a negative number at the end of the
/// control socket. `file`: the descriptor in the packet, or -1.
std::int64_t receive(Packet& packet, int& file) {
  std::vector<int> files;
  const ssize_t bytes = wire::receiveWithFiles(kControl, &packet, sizeof packet, files).bytes;
  file = wire::keepFirst(files);
  if (bytes < static_cast<ssize_t>(sizeof(Header))) return -1;
  return bytes - static_cast<std::int64_t>(sizeof(Header));
}

/// Waits while gpu-proxy ends, because the copies here must be the last ones. The death of
/// gpu-proxy kills this process.
[[noreturn]] void awaitDeathOfProxy() {
  for (;;) pause();
}

/// Ends this process. It closes the control socket first, so that gpu-proxy starts another closer
/// at once.
[[noreturn]] void giveWay() {
  shutdown(kControl, SHUT_RDWR);
  _exit(1);
}

[[noreturn]] void serve() {
  std::unordered_map<std::uint32_t, int> held;
  static Packet packet;
  for (;;) {
    int file = -1;
    const std::int64_t bytes = receive(packet, file);
    if (bytes < 0) awaitDeathOfProxy();
    const auto& [kind, id] = packet.header;
    if (kind == Kind::hold) {
      if (file >= 0) held.emplace(id, file);
      continue;
    }
    const auto found = held.find(id);
    if (found == held.end()) continue;
    const std::size_t length = kind == Kind::answer ? static_cast<std::size_t>(bytes) : 0;
    if (!closer::dispose(found->second, std::span(packet.rest.data(), length))) giveWay();
    held.erase(found);
  }
}

void raiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Returns the process that made the control socket: gpu-proxy. getppid() is another process if
/// gpu-proxy has died before this one asks.
pid_t makerOfControl() {
  ucred maker{};
  socklen_t bytes = sizeof maker;
  return getsockopt(kControl, SOL_SOCKET, SO_PEERCRED, &maker, &bytes) == 0 ? maker.pid : -1;
}

}  // namespace

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != makerOfControl()) return 0;
  for (const int ignored : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(ignored, SIG_IGN);
  closer::prepareInterrupts();
  raiseDescriptorLimit();
  serve();
}
