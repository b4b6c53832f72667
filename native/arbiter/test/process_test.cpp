// The real nvidia-virtual-arbiter with a control connection and with workers that are processes.
// Shares are tested in virtual time by schedule_test.cpp and node_test.cpp.
#include <dirent.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <span>

#include "native/arbiter/test/played.h"
#include "test/unit/descriptors.h"
#include "test/unit/program.h"

namespace arbiter::test {
namespace {

/// Of the sockets; removed when the program ends.
struct Directory {
  char path[32] = "/tmp/arbiter-test-XXXXXX";
  Directory() {
    if (mkdtemp(path) == nullptr) std::abort();
  }
  ~Directory() {
    for (const char* name : {"/arbiter.sock", "/arbiter.sock.lock"})
      unlink((std::string(path) + name).c_str());
    rmdir(path);
  }
};
const Directory directory;

/// A running arbiter.
class Running {
 public:
  explicit Running(std::vector<std::string> more = {})
      : socket(std::string(directory.path) + "/arbiter.sock"), child_([&] { start(more); }) {}
  const std::string socket;
  pid_t pid() const { return child_.pid; }
  void kill() { child_.kill(); }
  int wait() { return child_.wait(); }

 private:
  void start(std::vector<std::string> more) const {
    const char* executable = unit::argument(0, "the path of nvidia-virtual-arbiter");
    more.insert(more.begin(), {executable, "--socket", socket});
    std::vector<char*> arguments;
    for (std::string& each : more) arguments.push_back(each.data());
    arguments.push_back(nullptr);
    execv(executable, arguments.data());
    _exit(127);
  }
  Child child_;
};

/// A tenant that always has work, in a process.
std::unique_ptr<Child> saturating(const std::string& socket, Control& control,
                                  const std::string& id) {
  auto child = std::make_unique<Child>([&] {
    PlayedWorker worker(socket);
    if (!worker.awaitMailbox()) _exit(1);
    worker.saturate();
  });
  control.say("worker " + std::to_string(child->pid) + ' ' + id);
  return child;
}

Time charged(const TimeUse& use) { return use.granted + use.overrun; }

TEST_CASE("a wrong command is answered with a sentence") {
  Running arbiter;
  Control control(arbiter.socket);
  const auto answer = [&](const std::string& line) {
    control.say(line);
    return control.hear();
  };
  CHECK(answer("dance").starts_with("error \"dance\" is not a command; the commands are begin"));
  CHECK(answer("allocation a 0 burst 0 g") == "error \"0\" is not a weight: give 1 to 100 percent");
  CHECK(answer("allocation a 50 often 0 g") ==
        "error \"often\" is not a policy: give burst or fixed");
  CHECK(answer("allocation a 50 burst 101 g") ==
        "error \"101\" is not a priority: give -100 to 100");
  CHECK(answer("allocation a 50 burst 0 g,g") == "error the GPU \"g\" is named twice");
  CHECK(answer("allocation a 50 burst 0 g,").starts_with("error \"g,\" is not a list of GPUs"));
  CHECK(answer("allocation a 50 burst 0") ==
        "error \"allocation a 50 burst 0\" is not of the form: allocation ID WEIGHT burst|fixed "
        "PRIORITY GPU[,GPU...]");
  CHECK(answer("worker 1 nowhere") == "error there is no allocation nowhere");
  CHECK(answer("latency nowhere low") == "error there is no allocation nowhere");
  CHECK(answer("latency a lower") == "error \"lower\" is not a latency: give low or normal");
  CHECK(answer("worker x a") == "error \"x\" is not a process id");
  CHECK(answer("window 499") == "error \"499\" is not a window: give 500 to 100000 microseconds");
  CHECK(answer("overrun 86401") ==
        "error \"86401\" is not a limit of an overrun: give 0 (none) to 86400 seconds");
  CHECK(answer("guarantee 101") ==
        "error \"101\" is not a guarantee: give 0 (none) to 100 percent");
  CHECK(answer("commit") == "error \"commit\" without \"begin\"");
  CHECK(answer("begin\nlatency a low") == "error there is no allocation a in this table");
  CHECK(answer("begin\nworker 1 a") == "error there is no allocation a in this table");
  CHECK(answer(std::string(20'000, 'x')).starts_with("error a line is longer than"));
  CHECK(control.hear().empty());
}

TEST_CASE("a worker may connect before the proxy has named its allocation") {
  Running arbiter;
  Control control(arbiter.socket);
  control.say("allocation a 50 burst 0 g");
  control.say("latency a low");
  PlayedWorker worker(arbiter.socket);
  CHECK(control.figures().size() == 1);  // and no error
  control.say("worker " + std::to_string(getpid()) + " a");
  CHECK(worker.awaitMailbox());
  CHECK(worker.mailbox->magic == kMailboxMagic);
  CHECK(worker.mailbox->version == kMailboxVersion);
  const int seals = fcntl(worker.file, F_GET_SEALS);
  CHECK((seals & F_SEAL_SHRINK) != 0);
  CHECK((seals & F_SEAL_GROW) != 0);
  CHECK((seals & F_SEAL_SEAL) != 0);
  worker.want();
  CHECK(worker.grant() == Grant::open);
  control.say("remove a");
  CHECK(comesTrue([&] { return worker.ended(); }));
}

/// The process has no timer that runs.
bool awaitsNoTime(pid_t pid) {
  const std::filesystem::path files = "/proc/" + std::to_string(pid) + "/fdinfo";
  for (const auto& entry : std::filesystem::directory_iterator(files)) {
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);)
      if (line.starts_with("it_value:") && line != "it_value: (0, 0)") return false;
  }
  return true;
}

TEST_CASE("a lone tenant runs open, and the arbiter sleeps") {
  Running arbiter;
  Control control(arbiter.socket);
  control.say("allocation a 10 burst 0 g");
  control.say("allocation silent 90 burst 5 g");
  control.say("worker " + std::to_string(getpid()) + " a");
  PlayedWorker worker(arbiter.socket);
  CHECK(worker.awaitMailbox());
  worker.want();
  CHECK(worker.grant() == Grant::open);
  const TimeUse first = control.figures().at("a");
  worker.mailbox->used.fetch_add(kMicrosecond);
  const TimeUse second = control.figures().at("a");
  const TimeUse third = control.figures().at("a");  // and nothing ran since
  CHECK(second.granted == first.granted + kMicrosecond);
  CHECK(third.granted == second.granted);
  CHECK(third.windows == 1);
  worker.mailbox->used.fetch_add(~std::uint64_t{0} /
                                 2);  // no tenant uses more than all of the time
  CHECK(control.figures().at("a").granted < monotonic());
  CHECK(comesTrue([&] { return awaitsNoTime(arbiter.pid()); }));
  CHECK(worker.grant() == Grant::open);
}

TEST_CASE("the time of a short program is counted when it ends") {
  Running arbiter;
  Control control(arbiter.socket);
  control.say("allocation a 10 burst 0 g");
  Child program([&] {
    PlayedWorker worker(arbiter.socket);
    if (!worker.awaitMailbox()) _exit(1);
    worker.want();
    worker.mailbox->used.fetch_add(kMicrosecond);
  });
  control.say("worker " + std::to_string(program.pid) + " a");
  CHECK(program.wait() == 0);
  CHECK(comesTrue([&] { return control.figures().at("a").granted >= kMicrosecond; }));
}

// From then on the tenant of lower priority is in windows.
TEST_CASE("work on standby counts even if it is over before the arbiter looks") {
  Running arbiter;
  Control control(arbiter.socket);
  control.say("allocation high 50 burst 10 g");
  control.say("allocation low 50 burst 0 g");
  control.say("worker " + std::to_string(getpid()) + " high");
  PlayedWorker high(arbiter.socket);
  CHECK(high.awaitMailbox());
  high.sayDrained();
  auto low = saturating(arbiter.socket, control, "low");
  for (std::uint64_t begun = 1; begun <= 3; ++begun) {
    CHECK(comesTrue(
        [&] { return high.mailbox->standby.load() == 1 && high.grant() == Grant::window; }));
    CHECK(high.mailbox->outranks.load() == 1);
    high.mailbox->standby.store(0);
    high.poke();
    CHECK(comesTrue([&] { return control.figures().at("high").windows == begun; }));
    CHECK(comesTrue([&] { return high.grant() == Grant::closed; }));  // idle, and low waits
    high.sayDrained();
  }
}

TEST_CASE("the window of a worker that is killed goes to the other at once") {
  Running arbiter;
  Control control(arbiter.socket);
  control.say("allocation a 50 burst 0 g");
  control.say("allocation b 50 burst 0 g");
  auto survivor = saturating(arbiter.socket, control, "b");
  for (int death = 0; death < 10; ++death) {
    auto victim = saturating(arbiter.socket, control, "a");
    const auto windows = control.figures().at("a").windows + static_cast<unsigned>(death);
    CHECK(comesTrue([&] { return control.figures().at("a").windows > windows; }));
    victim->kill();
    const Time before = charged(control.figures().at("b"));
    CHECK(comesTrue([&] { return charged(control.figures().at("b")) > before; }));
  }
  // The proxy tells of the end of a worker whose process is still there.
  auto stopped = saturating(arbiter.socket, control, "a");
  const auto windows = control.figures().at("a").windows;
  CHECK(comesTrue([&] { return control.figures().at("a").windows > windows; }));
  kill(stopped->pid, SIGSTOP);
  control.say("gone " + std::to_string(stopped->pid));
  const Time before = control.figures().at("a").overrun, other = charged(control.figures().at("b"));
  CHECK(comesTrue([&] { return charged(control.figures().at("b")) > other + 50 * kMillisecond; }));
  CHECK(control.figures().at("a").overrun <= before + kMillisecond);
}

TEST_CASE("a stopped worker that holds the window costs its own share only") {
  Running arbiter;
  Control control(arbiter.socket);
  control.say("allocation stopped 50 burst 0 g");
  control.say("allocation other 50 burst 0 g");
  auto stopped = saturating(arbiter.socket, control, "stopped");
  auto other = saturating(arbiter.socket, control, "other");
  CHECK(comesTrue([&] { return control.figures().at("stopped").windows > 2; }));
  kill(stopped->pid, SIGSTOP);
  const auto before = control.figures().at("other");
  CHECK(comesTrue([&] {
    return charged(control.figures().at("other")) - charged(before) > 200 * kMillisecond;
  }));
}

TEST_CASE("allocations of the new table keep their account, and the others end") {
  Running arbiter;
  auto control = std::make_unique<Control>(arbiter.socket);
  control->say("allocation keep 50 burst 0 g");
  control->say("allocation drop 50 burst 0 g");
  auto kept = saturating(arbiter.socket, *control, "keep");
  Child dropped([&] {
    PlayedWorker worker(arbiter.socket);
    if (!worker.awaitMailbox()) _exit(1);
    worker.want();  // it may sleep through its only window
    _exit(comesTrue([&] { return worker.ended(); }) ? 0 : 2);
  });
  control->say("worker " + std::to_string(dropped.pid) + " drop");
  for (const char* id : {"keep", "drop"})
    CHECK(comesTrue([&] { return control->figures().at(id).windows > 0; }));
  control->say("begin");
  control->say("allocation half 1 fixed 0 g");
  control.reset();  // in the middle of a table: it is dropped
  control = std::make_unique<Control>(arbiter.socket);
  CHECK(control->figures().size() == 2);
  const auto windows = control->figures().at("keep").windows;
  control->say("begin");
  control->say("allocation keep 60 burst 0 g");
  control->say("worker " + std::to_string(kept->pid) + " keep");
  control->say("allocation new 40 burst 0 g");
  CHECK(control->figures().size() == 2);
  control->say("commit");
  const auto figures = control->figures();
  REQUIRE(figures.size() == 2);
  CHECK(figures.contains("new"));
  CHECK(figures.at("keep").windows >= windows);
  CHECK(dropped.wait() == 0);
}

TEST_CASE("ten thousand connections stop no window and leave no descriptor") {
  Running arbiter;
  Control control(arbiter.socket);
  control.say("allocation a 50 burst 0 g");
  control.say("allocation b 50 burst 0 g");
  auto a = saturating(arbiter.socket, control, "a");
  auto b = saturating(arbiter.socket, control, "b");
  const auto descriptors = [&] {
    int count = 0;
    DIR* files = opendir(("/proc/" + std::to_string(arbiter.pid()) + "/fd").c_str());
    while (readdir(files) != nullptr) ++count;
    closedir(files);
    return count;
  };
  CHECK(comesTrue([&] { return control.figures().at("b").windows > 1; }));
  const int before = descriptors();
  Child flood([&] {
    for (int i = 0; i < 10'000; ++i) {
      const int file = connectTo(arbiter.socket);
      const std::string garbage(i % 3 == 0 ? 1 : 5000, static_cast<char>(i));
      if (i % 4 != 0) send(file, garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (i % 2 == 0) close(file);
      if (i % 500 == 1) closefrom(3);
    }
  });
  const auto windows = control.figures();
  CHECK(flood.wait() == 0);
  CHECK(comesTrue([&] {
    const auto now = control.figures();
    return now.at("a").windows > windows.at("a").windows + 2 &&
           now.at("b").windows > windows.at("b").windows + 2;
  }));
  CHECK(comesTrue([&] { return descriptors() <= before; }));
}

TEST_CASE("a process that the proxy has not named gets no mailbox and no answer") {
  Running arbiter;
  PlayedWorker stranger(arbiter.socket);
  stranger.poke();
  CHECK(!stranger.awaitMailbox());  // the connection ends after a while
  const int file = connectTo(arbiter.socket);
  send(file, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
  char byte;
  CHECK(recv(file, &byte, 1, 0) <= 0);
  close(file);
}

TEST_CASE("one arbiter runs at a time, and ends some time after its last client") {
  Running arbiter;
  Control control(arbiter.socket);
  CHECK(control.figures().empty());
  Running second;
  CHECK(WEXITSTATUS(second.wait()) == 1);
  Control again(arbiter.socket);
  CHECK(again.figures().empty());
  arbiter.kill();  // its socket stays behind, and is no obstacle
  Running third({"--linger-s", "1"});
  {
    Control last(third.socket);
    CHECK(last.figures().empty());
  }
  CHECK(third.wait() == 0);  // no client connected again
  CHECK(access(third.socket.c_str(), F_OK) != 0);
}

// A descriptor whose last close blocks would hold up the GPU time of all tenants.
TEST_CASE("the arbiter accepts no descriptors") {
  Running arbiter;
  const int connection = connectTo(arbiter.socket);
  constexpr int kPassRights = 83;
  int accepted = 0;
  socklen_t bytes = sizeof accepted;
  // Linux 6.16 and newer.
  const bool known = getsockopt(connection, SOL_SOCKET, kPassRights, &accepted, &bytes) == 0;
  if (known) {
    const auto bytes = std::as_bytes(std::span("x", 1));
    CHECK(unit::sendWithFiles(connection, bytes, std::span(&connection, 1)) == -1);
    CHECK(errno == EPERM);
  }
  close(connection);
}

}  // namespace
}  // namespace arbiter::test
