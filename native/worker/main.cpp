// nvidia-virtual-worker: executes the CUDA calls of one client process. The proxy starts it with
// the client's connection, or starts it warm and sends the connection later.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>

#include "native/worker/accounts/held_memory.h"
#include "native/worker/descriptors.h"
#include "native/worker/driver/cache.h"
#include "native/worker/driver/layout.h"
#include "native/worker/driver/session_environment.h"
#include "native/worker/driver/simulated_state.h"
#include "native/worker/driver/warm.h"
#include "native/worker/gpus/device_processes.h"
#include "native/worker/gpus/inventory.h"
#include "native/worker/isolation/confinement.h"
#include "native/worker/options.h"
#include "native/worker/reports/log.h"
#include "native/worker/session/control.h"
#include "native/worker/session/session.h"
#include "native/worker/session/session_start.h"
#include "native/worker/session/thread.h"
#include "wire/process_barrier.h"

namespace worker {

namespace {

/// Reads the hello without consuming it, because the process may execute itself again and read it
/// there.
bool peekHello(wire::Hello& hello) {
  struct {
    wire::MessageHeader header;
    wire::Hello hello;
  } first{};
  if (recv(kConnection, &first, sizeof first, MSG_PEEK | MSG_WAITALL) != sizeof first ||
      first.header.kind != wire::MessageKind::hello)
    return false;
  hello = first.hello;
  return true;
}

/// Reads the environment in the hello, also without consuming it. False if there is none, or if it
/// exceeds 64 KiB.
bool peekVariables(std::vector<std::byte>& variables) {
  constexpr std::size_t kMost = 65536;
  constexpr std::size_t kBefore = sizeof(wire::MessageHeader) + sizeof(wire::Hello);
  wire::MessageHeader header{};
  if (recv(kConnection, &header, sizeof header, MSG_PEEK) != sizeof header) return false;
  const std::size_t bytes = sizeof header + header.bytes;
  if (bytes < kBefore || bytes > kMost) return false;
  std::vector<std::byte> message(bytes);
  if (recv(kConnection, message.data(), bytes, MSG_PEEK | MSG_WAITALL) !=
      static_cast<ssize_t>(bytes))
    return false;
  variables.assign(message.begin() + kBefore, message.end());
  return true;
}

/// Whether the driver of a warm worker suits the client.
bool suits(const WarmDriver& warm, const Options& options, const wire::Hello& hello) {
  std::vector<std::byte> variables;
  return layoutSuits(hello.deviceRangesTaken != 0) && peekVariables(variables) &&
         warm.suits(options, sessionEnvironment(variables, options), hello.window);
}

pid_t clientProcess() {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(kConnection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : -1;
}

/// No race with a reused pid: if the client has already exited, serve() sees that on the
/// connection.
int openPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

void reportEnd(Session& session, const std::string& reason) {
  JsonObject end;
  end.add("reason", reason)
      .add("peakMemory", session.quota.peak())
      .add("launches", session.figures.launches.load());
  if (session.fault() != CUDA_SUCCESS) end.add("fault", nameOf(session.driver, session.fault()));
  session.report.event("ended", end);
}

/// Opens the NVML library in the driver's directory. Call it before the first context exists.
void openNvml(const Options& options) {
  const std::string directory = options.driver.substr(0, options.driver.rfind('/') + 1);
  const std::string sentence =
      openHeldMemory(directory + (options.simulatedState.empty() ? "libnvidia-ml.so.1"
                                                                 : "libsimulator-nvml.so.1"));
  if (!sentence.empty())
    log("this worker cannot see GPU memory that code takes beyond its charges: %s",
        sentence.c_str());
}

/// Opens the files that the session shares with the proxy. Returns an error message, or an empty
/// string.
std::string openFiles(const Options& options, Quota& quota, FiguresFile& figures,
                      const WarmDriver* warm) {
  std::string sentence;
  if (warm == nullptr) sentence = shareSimulatedState(options.simulatedState);
  if (warm == nullptr) openNvml(options);
  if (sentence.empty() && !options.quota.empty())
    sentence = quota.open(options.quota, options.quotaSlot, options.memoryLimit);
  if (sentence.empty() && !options.sharing.empty())
    sentence = Sharing::open(options.sharing, options.quotaSlot, quota.exports);
  if (sentence.empty() && !options.figures.empty()) sentence = figures.open(options.figures);
  if (!sentence.empty()) return sentence;
  if (options.allocations.empty())
    return options.cache.empty() ? sentence : useCache(options.cache);
  sentence = hideAllocations(options.allocations, options.cache);
  return sentence.empty() && !options.cache.empty() ? useCache(options.allocations) : sentence;
}

void tellUnknown(const Options& options) {
  std::string names;
  for (const std::string& name : options.unknown)
    names.append(names.empty() ? "" : ", ").append(name);
  if (!names.empty())
    log("gpu-proxy is newer than this worker, which ignores the unknown options %s", names.c_str());
}

int serve(const Options& options, char** arguments, Output& output, const WarmDriver* warm) {
  wire::Hello hello{};
  if (!peekHello(hello)) return 0;  // the peer left, or speaks another protocol
  if (warm != nullptr && !suits(*warm, options, hello)) return startAgain(arguments), 1;
  if (!layoutSuits(hello.deviceRangesTaken != 0)) changeLayout(arguments);

  Report report(kReport);
  Quota quota;
  FiguresFile figures;
  if (const std::string sentence = openFiles(options, quota, figures, warm); !sentence.empty())
    return log("%s", sentence.c_str()), 1;

  // Never destroyed: threads of the session and the driver use it until the process exits.
  auto* session =
      new Session(kConnection, report, quota, figures.figures(), output, options.limits);
  tellUnknown(options);
  const pid_t client = clientProcess();
  const int pidfd = openPidfd(client);
  if (!SessionStart(options, *session, client, warm).run())
    _exit(0);  // refused; client and proxy have been told
  session->gate.onOverdue([session](std::uint32_t seconds) { session->noteOverrun(seconds); });
  if (!options.arbiter.empty())
    // without one, time slicing is off, or not done by the arbiter
    session->gate.open(options.arbiter);
  if (options.control) (new Control(kControl, *session))->serve();  // never destroyed either
  reportEnd(*session, session->serve(pidfd, [&](int channelFile, bool answersFaults) {
    serveChannel(*session, channelFile, answersFaults);
  }));
  _exit(0);  // skips the driver's exit handlers, which wait for running kernels
}

int parseAndServe(std::vector<std::string> words, Output& output, const WarmDriver* warm) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Options options;
  std::string sentence;
  if (!parse(static_cast<int>(words.size()), arguments.data(), options, sentence))
    return log("%s", sentence.c_str()), 2;
  return serve(options, arguments.data(), output, warm);
}

int serveWarm(const Options& options, char** arguments, Output& output) {
  if (!layoutSuits(false)) changeLayout(arguments);
  dup2(kReport, kControl);  // keeps the number free for the assignment
  output.capture();
  if (const std::string sentence = shareSimulatedState(options.simulatedState); !sentence.empty())
    log("%s", sentence.c_str());
  openNvml(options);
  const WarmDriver warm(options);
  if (warm.start.status != CUDA_SUCCESS) {
    Report(kReport).event("refused", JsonObject().add("sentence", warm.start.sentence));
    _exit(1);
  }
  Report(kReport).event("warm", JsonObject());
  std::string sentence;
  std::vector<std::string> words = awaitAssignment(sentence);
  if (!sentence.empty()) log("%s", sentence.c_str());
  if (words.empty())
    _exit(sentence.empty() ? 0 : 1);  // without a message: the proxy does not need the worker
  words.insert(words.begin(), arguments[0]);
  _exit(parseAndServe(words, output, &warm));
}

int run(int count, char** arguments) {
  wire::registerForProcessBarriers();  // must run while there is only one thread
  const wire::ThreadBarrier registered;
  refuseCoreDumps();
  std::signal(SIGPIPE, SIG_IGN);  // the session outlives the readers of log and report
  static Output output;           // the driver's threads may print until the process exits
  Options options;
  std::string sentence;
  if (!parse(count, arguments, options, sentence)) return log("%s", sentence.c_str()), 2;
  if (!options.processes.empty()) return printDeviceProcesses(options);
  if (options.inventory) return printInventory(options);
  if (options.presence) return printPresence(options);
  if (options.warm) return serveWarm(options, arguments, output);
  output.capture();
  return serve(options, arguments, output, nullptr);
}

}  // namespace

}  // namespace worker

int main(int count, char** arguments) { return worker::run(count, arguments); }
