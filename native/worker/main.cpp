// nvidia-virtual-worker: executes the CUDA calls of one client process. The proxy starts it with the client's connection, or warm, and
// sends it one later.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>

#include "native/worker/cache.h"
#include "native/worker/descriptors.h"
#include "native/worker/device_processes.h"
#include "native/worker/inventory.h"
#include "native/worker/layout.h"
#include "native/worker/log.h"
#include "native/worker/options.h"
#include "native/worker/session.h"
#include "native/worker/session_start.h"
#include "native/worker/warm.h"

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

/// The environment that comes with it, left unread too. False when there is none, or more than any program has.
bool peekVariables(std::vector<std::byte>& variables) {
  constexpr std::size_t kMost = 65536;
  constexpr std::size_t kBefore = sizeof(wire::MessageHeader) + sizeof(wire::Hello);
  wire::MessageHeader header{};
  if (recv(kConnection, &header, sizeof header, MSG_PEEK) != sizeof header) return false;
  const std::size_t bytes = sizeof header + header.bytes;
  if (bytes < kBefore || bytes > kMost) return false;
  std::vector<std::byte> message(bytes);
  if (recv(kConnection, message.data(), bytes, MSG_PEEK | MSG_WAITALL) != static_cast<ssize_t>(bytes)) return false;
  variables.assign(message.begin() + kBefore, message.end());
  return true;
}

/// Whether a client of a warm worker can be served by the driver that it has started.
bool suits(const WarmDriver& warm, const Options& options, const wire::Hello& hello) {
  std::vector<std::byte> variables;
  return layoutSuits(hello.deviceRangesTaken != 0) && peekVariables(variables) &&
         warm.suits(options, driverEnvironment(variables, options.gpus, !options.cache.empty(), options.mps), hello.window);
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

/// What the session shares with the proxy. A sentence when something is not there.
std::string openFiles(const Options& options, Quota& quota, FiguresFile& figures) {
  std::string sentence;
  if (!options.quota.empty()) sentence = quota.open(options.quota, options.quotaSlot, options.memoryLimit);
  if (sentence.empty() && !options.figures.empty()) sentence = figures.open(options.figures);
  if (sentence.empty() && !options.cache.empty()) sentence = useCache(options.cache);
  return sentence;
}

void tellUnknown(const Options& options) {
  std::string names;
  for (const std::string& name : options.unknown) names.append(names.empty() ? "" : ", ").append(name);
  if (!names.empty()) log("gpu-proxy is newer than this worker, which does not know %s, and serves without", names.c_str());
}

int serve(const Options& options, char** arguments, Output& output, const WarmDriver* warm) {
  wire::Hello hello{};
  if (!peekHello(hello)) return 0;  // somebody who connected and left, or spoke nothing that we know
  if (warm != nullptr && !suits(*warm, options, hello)) return startAgain(arguments), 1;
  if (!layoutSuits(hello.deviceRangesTaken != 0)) changeLayout(arguments);

  Report report(kReport);
  Quota quota;
  FiguresFile figures;
  if (const std::string sentence = openFiles(options, quota, figures); !sentence.empty()) return log("%s", sentence.c_str()), 1;

  // Not destroyed: threads of the session and of the driver use it until the process is gone.
  auto* session = new Session(kConnection, report, quota, figures.figures(), output, options.limits);
  tellUnknown(options);
  const pid_t client = clientProcess();
  const int pidfd = openPidfd(client);
  if (!SessionStart(options, *session, client, warm).run()) _exit(0);  // refused, and said so to client and proxy
  if (!options.arbiter.empty()) session->gate.open(options.arbiter);
  reportEnd(*session, session->serve(pidfd));
  _exit(0);  // the driver's own exit handlers would wait for kernels that nobody needs any more
}

int parseAndServe(std::vector<std::string> words, Output& output, const WarmDriver* warm) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Options options;
  std::string sentence;
  if (!parse(static_cast<int>(words.size()), arguments.data(), options, sentence)) return log("%s", sentence.c_str()), 2;
  return serve(options, arguments.data(), output, warm);
}

int serveWarm(const Options& options, char** arguments, Output& output) {
  if (!layoutSuits(false)) changeLayout(arguments);
  output.capture();
  const WarmDriver warm(options);
  if (warm.start.status != CUDA_SUCCESS) {
    Report(kReport).event("refused", JsonObject().add("sentence", warm.start.sentence));
    _exit(1);
  }
  Report(kReport).event("warm", JsonObject());
  std::string sentence;
  std::vector<std::string> words = awaitAssignment(sentence);
  if (!sentence.empty()) log("%s", sentence.c_str());
  if (words.empty()) _exit(sentence.empty() ? 0 : 1);  // without a sentence, the proxy needs no more
  words.insert(words.begin(), arguments[0]);
  _exit(parseAndServe(words, output, &warm));
}

int run(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // whoever reads the log and the report may go; the session stays
  static Output output;           // the driver's threads may print until the process is gone
  Options options;
  std::string sentence;
  if (!parse(count, arguments, options, sentence)) return log("%s", sentence.c_str()), 2;
  if (!options.processes.empty()) return printDeviceProcesses(options.processes);
  if (options.inventory) return printInventory(options);
  if (options.presence) return printPresence(options);
  if (options.warm) return serveWarm(options, arguments, output);
  output.capture();
  return serve(options, arguments, output, nullptr);
}

}  // namespace

}  // namespace worker

int main(int count, char** arguments) { return worker::run(count, arguments); }
