#include "native/closer/disposal.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <memory>
#include <vector>

namespace closer {

namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostAnswers = 256;  ///< further connections are closed without an answer
constexpr std::size_t kStackBytes = 64 * 1024;
constexpr std::int64_t kPatience =
    5'000;  ///< milliseconds that a client has to send its greeting and receive the answer

std::atomic<int> threads{0};
std::atomic<int> answers{0};

struct Disposal {
  int connection;
  std::vector<std::byte> answer;
};

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
}

/// Signals the calling thread every 100 ms during its lifetime. A signal interrupts a close that
/// lingers for a peer chosen by the client.
class Interrupts {
 public:
  Interrupts() {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR1;
    event._sigev_un._tid = gettid();
    armed_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    const itimerspec every{{0, 100'000'000}, {0, 100'000'000}};
    if (armed_) timer_settime(timer_, 0, &every, nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  ~Interrupts() {
    if (armed_) timer_delete(timer_);
  }

 private:
  timer_t timer_{};
  bool armed_ = false;
};

/// Whether input arrives, or the peer closes, before `deadline`.
bool awaitInput(int connection, std::int64_t deadline) {
  for (std::int64_t left = deadline - now(); left > 0; left = deadline - now()) {
    pollfd wait{connection, POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
  return false;
}

/// Returns the number of bytes read; 0 at the end. The kernel closes descriptors that come with
/// them, on this thread.
ssize_t takeInput(int connection) {
  char input[4096];
  return recv(connection, input, sizeof input, MSG_DONTWAIT);
}

/// Waits for the client's greeting, then answers. The kernel drops the answer if the greeting is
/// unread at the close.
void tell(int connection, const std::vector<std::byte>& answer) {
  const std::int64_t deadline = now() + kPatience;
  if (!awaitInput(connection, deadline) || takeInput(connection) <= 0) return;
  send(connection, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(connection, SHUT_WR);
  while (awaitInput(connection, deadline) && takeInput(connection) > 0) {
  }
}

void* run(void* argument) {
  const std::unique_ptr<Disposal> disposal(static_cast<Disposal*>(argument));
  const Interrupts interrupts;
  if (!disposal->answer.empty()) {
    tell(disposal->connection, disposal->answer);
    --answers;
  }
  close(disposal->connection);
  --threads;
  return nullptr;
}

bool startThread(Disposal* disposal) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, run, disposal);
  pthread_attr_destroy(&attributes);
  return error == 0;
}

}  // namespace

void prepareInterrupts() {
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  sigaction(SIGUSR1, &nothing, nullptr);
}

bool dispose(int connection, std::span<const std::byte> answer) {
  if (threads >= kMostThreads) return false;
  const bool answered = !answer.empty() && answers < kMostAnswers;
  auto disposal = std::make_unique<Disposal>();
  disposal->connection = connection;
  if (answered) disposal->answer.assign(answer.begin(), answer.end());
  ++threads;
  if (answered) ++answers;
  return startThread(disposal.get()) && (static_cast<void>(disposal.release()), true);
}

}  // namespace closer
