// nvidia-virtual-arbiter: schedules the time of a node's GPUs. gpu-proxy starts it; it outlives
// gpu-proxy.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "native/arbiter/protocol.h"
#include "native/arbiter/server.h"

namespace arbiter {

namespace {

constexpr const char* kUsage =
    "nvidia-virtual-arbiter is started by gpu-proxy with --socket PATH [--linger-s SECONDS]";

bool parseTime(std::string_view text, Time unit, Time least, Time most, Time& time) {
  Time value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  time = value * unit;
  return error == std::errc() && end == text.data() + text.size() && value >= least &&
         value <= most;
}

bool parseOption(std::string_view name, const char* value, Settings& settings) {
  if (name == "--socket") return settings.socket = value, *value != '\0';
  if (name == "--linger-s") return parseTime(value, kSecond, 1, 1'000'000, settings.linger);
  return false;
}

bool parseOptions(int count, char** arguments, Settings& settings) {
  for (int i = 1; i < count; i += 2) {
    if (i + 1 >= count || !parseOption(arguments[i], arguments[i + 1], settings)) return false;
  }
  return !settings.socket.empty();
}

/// Makes this the only arbiter of the socket. The lock is held until the process ends. Returns an
/// error message, or an empty string.
std::string lock(const std::string& socket) {
  const std::string path = socket + ".lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return "the arbiter cannot create " + path + ": " + std::strerror(errno);
  return flock(file, LOCK_EX | LOCK_NB) == 0 ? "" : "another arbiter serves " + socket + " already";
}

int takeSignals() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ending, signal);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  return signalfd(-1, &ending, SFD_CLOEXEC);
}

void raiseFileLimit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

int run(int count, char** arguments) {
  Settings settings;
  if (!parseOptions(count, arguments, settings)) return std::fprintf(stderr, "%s\n", kUsage), 2;
  const int signals = takeSignals();
  std::signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds, so that windows end on time
  raiseFileLimit();
  Server server(settings);
  std::string sentence = lock(settings.socket);
  if (sentence.empty()) sentence = server.listen();
  if (!sentence.empty()) return std::fprintf(stderr, "%s\n", sentence.c_str()), 1;
  server.run(signals);
  unlink(settings.socket.c_str());
  return 0;
}

}  // namespace

}  // namespace arbiter

int main(int count, char** arguments) { return arbiter::run(count, arguments); }
