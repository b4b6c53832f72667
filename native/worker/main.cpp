// nvidia-virtual-worker: executes the CUDA calls of one client process. The proxy starts it with the client's connection.
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "native/worker/descriptors.h"
#include "native/worker/inventory.h"
#include "native/worker/log.h"
#include "native/worker/options.h"
#include "native/worker/session.h"
#include "native/worker/session_start.h"

namespace worker {

namespace {

/// The hello, left unread: what follows may be a re-execution that reads it.
bool peekHello(wire::Hello& hello) {
  struct {
    wire::MessageHeader header;
    wire::Hello hello;
  } first{};
  if (recv(kConnection, &first, sizeof first, MSG_PEEK | MSG_WAITALL) != sizeof first || first.header.kind != wire::MessageKind::hello)
    return false;
  hello = first.hello;
  return true;
}

/// In the legacy layout nothing that the driver places can share an address with an ordinary client, whose mappings grow down from
/// 0x7fff…. A client that is in that layout itself is served from the default one.
void chooseLayout(const wire::Hello& hello, char** arguments) {
  const int present = personality(0xffffffff);
  const bool legacy = (present & ADDR_COMPAT_LAYOUT) != 0;
  if (present < 0 || legacy == (hello.deviceRangesTaken == 0)) return;
  if (personality(legacy ? present & ~ADDR_COMPAT_LAYOUT : present | ADDR_COMPAT_LAYOUT) < 0) {
    log("the system refuses to change the memory layout (personality: %s); going on without", std::strerror(errno));
    return;
  }
  execv("/proc/self/exe", arguments);
  log("cannot start again in another memory layout: %s", std::strerror(errno));
}

pid_t clientProcess() {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(kConnection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : -1;
}

/// Races with nothing: the connection is open, so a client that is gone already is seen there.
int openPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

void reportEnd(Session& session, const std::string& reason) {
  JsonObject end;
  end.add("reason", reason).add("peakMemory", session.quota.peak()).add("launches", session.figures.launches.load());
  if (session.fault() != CUDA_SUCCESS) end.add("fault", nameOf(session.driver, session.fault()));
  session.report.event("ended", end);
}

int serve(const Options& options, char** arguments) {
  wire::Hello hello{};
  if (!peekHello(hello)) return 0;  // somebody who connected and left, or spoke nothing that we know
  chooseLayout(hello, arguments);

  Report report(kReport);
  Quota quota;
  std::string sentence;
  if (!options.quota.empty()) sentence = quota.open(options.quota, options.quotaSlot, options.memoryLimit);
  FiguresFile figures;
  if (sentence.empty() && !options.figures.empty()) sentence = figures.open(options.figures);
  if (!sentence.empty()) return log("%s", sentence.c_str()), 1;

  // Neither is destroyed: threads of the session and of the driver use them until the process is gone.
  auto* session = new Session(kConnection, report, quota, figures.figures(), options.limits);
  const pid_t client = clientProcess();
  const int pidfd = openPidfd(client);
  if (!SessionStart(options, *session, client).run()) _exit(0);  // refused, and said so to client and proxy
  reportEnd(*session, session->serve(pidfd));
  _exit(0);  // the driver's own exit handlers would wait for kernels that nobody needs any more
}

int run(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // whoever reads the log and the report may go; the session stays
  Options options;
  std::string sentence;
  if (!parse(count, arguments, options, sentence)) return log("%s", sentence.c_str()), 2;
  return options.inventory ? printInventory(options) : serve(options, arguments);
}

}  // namespace

}  // namespace worker

int main(int count, char** arguments) { return worker::run(count, arguments); }
