// nvidia-virtual-keeper PID SOCKET: holds the files of a parked worker while that is in a file, so
// that its client lives on. README.md says what it does.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "native/keeper/held_files.h"

namespace {

/// The socket for commands, by contract with gpu-proxy/src/checkpoints/keeper.ts.
constexpr int kCommands = 3;
constexpr int kPollMilliseconds = 200;
constexpr std::string_view kGive = "give ", kArena = "arena ";

/// A command, the descriptor for the answer, and maybe a file.
struct Command {
  std::array<char, 64> text;
  std::size_t bytes = 0;
  std::array<int, 2> files{-1, -1};

  std::string_view word() const { return {text.data(), bytes}; }
};

bool receive(Command& command) {
  iovec into{command.text.data(), command.text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t bytes = recvmsg(kCommands, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const cmsghdr* const entry = bytes < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (entry == nullptr || entry->cmsg_type != SCM_RIGHTS) return false;
  command.bytes = static_cast<std::size_t>(bytes);
  std::memcpy(command.files.data(), CMSG_DATA(entry), entry->cmsg_len - CMSG_LEN(0));
  return true;
}

/// 0 if it is malformed.
template <class Number>
Number parse(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

class Keeper {
 public:
  std::string take(pid_t process) { return held_.take(process); }

  void run() {
    while (!gone_ && !held_.clientIsGone()) {
      pollfd wait{kCommands, POLLIN, 0};
      if (poll(&wait, 1, kPollMilliseconds) > 0) obey();
    }
  }

 private:
  void obey() {
    Command command;
    if (!receive(command)) return;
    const std::string answer = execute(command);
    if (!answer.empty()) [[maybe_unused]]
      const auto written = write(command.files[0], (answer + "\n").c_str(), answer.size() + 1);
    for (const int file : command.files)
      if (file >= 0) close(file);
  }

  std::string execute(const Command& command) {
    const std::string_view word = command.word();
    if (word == "drop") return held_.dropArenas(), "done";
    if (word.starts_with(kArena)) {
      const ino_t inode = parse<ino_t>(word.substr(kArena.size()));
      const bool put = inode != 0 && held_.putArena(inode, command.files[1]);
      return put ? "done" : "error the arena is not missing";
    }
    if (word.starts_with(kGive))
      return give(parse<pid_t>(word.substr(kGive.size())), command.files[0]);
    return word == "hold" ? "done" : "error it does not know the command";
  }

  /// The process answers itself when it goes on.
  std::string give(pid_t process, int answer) {
    if (held_.areHeldBy(process)) return "stays it has its files";
    const std::string problem = held_.giveTo(process, answer);
    gone_ = problem.empty();
    return gone_ ? "" : "error " + problem;
  }

  keeper::HeldFiles held_;
  bool gone_ = false;
};

/// Each file of the worker takes a descriptor.
void raiseLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  raiseLimit();
  static Keeper keeper;
  const pid_t process = count == 3 ? parse<pid_t>(arguments[1]) : 0;
  if (process <= 0) return std::fputs("nvidia-virtual-keeper is started by gpu-proxy\n", stderr), 2;
  if (const std::string problem = keeper.take(process); !problem.empty())
    return std::fprintf(stderr, "%s\n", problem.c_str()), 1;
  keeper.run();
  return 0;
}
