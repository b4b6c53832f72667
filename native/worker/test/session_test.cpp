// The end of a session: everything that a client sent before it ended is read, and nothing that one
// of its processes sends later. And the error of an earlier call, which comes in place of a call.
#include "native/worker/session/session.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "call_numbers.h"
#include "native/worker/session/thread.h"
#include "test/unit/waiting.h"
#include "wire/channel_memory.h"

namespace {

/// A process that has exited.
class DeadProcess {
 public:
  DeadProcess() : pid_(fork()) {
    if (pid_ == 0) _exit(0);
    pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    pollfd exit{pidfd, POLLIN, 0};
    CHECK(pidfd >= 0);
    CHECK(poll(&exit, 1, -1) == 1);
  }
  ~DeadProcess() {
    close(pidfd);
    waitpid(pid_, nullptr, 0);
  }
  DeadProcess(const DeadProcess&) = delete;
  DeadProcess& operator=(const DeadProcess&) = delete;

  int pidfd = -1;

 private:
  pid_t pid_;
};

std::atomic<int> allocations{0};
std::atomic<std::uint64_t> configurations{0};

/// Functions that the test does not need.
template <class R, class... A>
void succeed(R (*&function)(A...)) {
  function = [](A...) { return R{}; };
}

/// A session whose client is this process: its end of the connection stays open. Never destroyed,
/// as in the worker: its threads may outlive serve() for a moment.
struct Fixture {
  int socket[2];
  int reported[2];
  worker::Quota quota;
  worker::Figures figures;
  worker::Output output;
  std::unique_ptr<worker::Report> report;
  std::unique_ptr<worker::Session> session;

  explicit Fixture(const worker::Limits& limits) {
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socket) == 0);
    CHECK(pipe2(reported, O_CLOEXEC | O_NONBLOCK) == 0);
    report = std::make_unique<worker::Report>(reported[1]);
    session = std::make_unique<worker::Session>(socket[0], *report, quota, figures, output, limits);
    worker::forEachFunction([&]<auto Member>(const char*) { succeed(session->driver.*Member); });
    session->driver.cuMemAlloc_v2 = [](CUdeviceptr* address, std::size_t) {
      *address = ++allocations;
      return CUDA_SUCCESS;
    };
    session->driver.cuCtxSetCacheConfig = [](CUfunc_cache) {
      return ++configurations, CUDA_SUCCESS;
    };
  }
  static Fixture& make(const worker::Limits& limits = {}) {
    static auto* const all = new std::vector<Fixture*>;
    return *all->emplace_back(new Fixture(limits));
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  /// Serves a client that has exited.
  std::string serve() { return serve(DeadProcess().pidfd); }
  std::string serve(int pidfd) {
    return session->serve(pidfd, [&](int channelFile, bool answersFaults) {
      worker::serveChannel(*session, channelFile, answersFaults);
    });
  }
  void send(wire::MessageKind kind, std::string_view text, int file = -1, std::uint64_t id = 0) {
    CHECK(wire::sendMessage(socket[1], kind, id, std::as_bytes(std::span(text)), file));
  }
  std::string events() {
    char text[4096];
    const auto bytes = read(reported[0], text, sizeof text);
    return {text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
  }
};

/// `ticket`: its number, counted from 1.
void publish(wire::ClientChannel& channel, CallNumber call, std::uint64_t ticket,
             std::uint64_t argument, std::uint16_t flags) {
  wire::Encoder frame = channel.begin(8);
  frame.put(argument);
  channel.publish(frame, static_cast<std::uint16_t>(call), flags, ticket * wire::kTicket);
}

TEST_CASE("messages of a client that has exited are read") {
  Fixture& test = Fixture::make();
  test.send(wire::MessageKind::unsupported, "cuGraphCreate");
  test.send(wire::MessageKind::unsupported, "cuGraphDestroy");
  CHECK(test.serve() == "client exited");
  const std::string events = test.events();
  CHECK(events.find("cuGraphCreate") != std::string::npos);
  CHECK(events.find("cuGraphDestroy") != std::string::npos);
}

// A forked child could send the rest, or never do so.
TEST_CASE("half a message does not delay the end") {
  Fixture& test = Fixture::make();
  test.send(wire::MessageKind::unsupported, "cuGraphCreate");
  const wire::MessageHeader header{wire::MessageKind::unsupported, 100, 0};
  CHECK(write(test.socket[1], &header, sizeof header) == sizeof header);
  CHECK(test.serve() == "client exited");
  CHECK(test.events().find("cuGraphCreate") != std::string::npos);
  CHECK(::send(test.socket[1], &header, sizeof header, MSG_NOSIGNAL) < 0);
}

/// A process that waits until it is killed.
class LivingProcess {
 public:
  LivingProcess() : pid_(fork()) {
    while (pid_ == 0) pause();
    pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  }
  ~LivingProcess() {
    kill();
    close(pidfd);
    waitpid(pid_, nullptr, 0);
  }
  LivingProcess(const LivingProcess&) = delete;
  LivingProcess& operator=(const LivingProcess&) = delete;
  void kill() const { ::kill(pid_, SIGKILL); }
  int pidfd = -1;

 private:
  pid_t pid_;
};

/// serve() waits for a client that does not read all this text.
struct Unread {
  Fixture& test = Fixture::make();
  LivingProcess client;
  std::string reason;
  unit::Waiter server{[this] { reason = test.serve(client.pidfd); }};
  Unread() {
    test.output.append(1, std::string(std::size_t{4} << 20, 'x'));
    pollfd text{test.socket[1], POLLIN, 0};
    CHECK(poll(&text, 1, -1) == 1);
    CHECK(server.waits());
  }
};

TEST_CASE("a client that does not read does not delay its end") {
  Unread unread;
  unread.client.kill();
  unread.server.join();
  CHECK(unread.reason == "client exited");
}

TEST_CASE("a client that does not read does not delay the end of its session") {
  Unread unread;
  unread.test.session->fail("it has overrun");
  unread.server.join();
  CHECK(unread.reason == "it has overrun");
}

TEST_CASE("a client that sends half a message does not delay the end of its session") {
  Fixture& test = Fixture::make();
  const LivingProcess client;
  const wire::MessageHeader header{wire::MessageKind::unsupported, 100, 0};
  CHECK(write(test.socket[1], &header, sizeof header) == sizeof header);
  std::string reason;
  unit::Waiter server([&] { reason = test.serve(client.pidfd); });
  CHECK(server.waits());
  test.session->fail("it has overrun");
  server.join();
  CHECK(reason == "it has overrun");
}

// Also those of a thread whose first message is still in the socket.
TEST_CASE("frames of a client that has exited are read in the order of their tickets") {
  Fixture& test = Fixture::make();
  constexpr std::uint64_t kFrames = 1000;
  const std::unique_ptr<wire::ClientChannel> channels[] = {wire::ClientChannel::create(),
                                                           wire::ClientChannel::create()};
  for (std::uint64_t ticket = 1; ticket <= kFrames; ++ticket)
    publish(*channels[ticket <= kFrames / 2 ? 0 : 1], CallNumber::cuCtxSetCacheConfig, ticket, 0,
            0);
  for (const auto& channel : channels) test.send(wire::MessageKind::channel, "", channel->file());
  CHECK(test.serve() == "client exited");
  CHECK(configurations == kFrames);
}

/// Whether the session ends because of its threads. Each has a channel with the given id.
bool isOverThreads(unsigned limit, const std::vector<std::uint64_t>& channelIds) {
  worker::Limits limits;
  limits.threads = limit;
  Fixture& test = Fixture::make(limits);
  std::vector<std::unique_ptr<wire::ClientChannel>> channels;
  for (const std::uint64_t id : channelIds) {
    channels.push_back(wire::ClientChannel::create());
    test.send(wire::MessageKind::channel, "", channels.back()->file(), id);
  }
  test.serve();
  return test.events().find("overThreads") != std::string::npos;
}

TEST_CASE("the limit on threads does not count one that answers page faults") {
  constexpr std::uint64_t kPlain = 0;
  CHECK(!isOverThreads(2, {kPlain, wire::kAnswersFaults, kPlain}));
  CHECK(isOverThreads(2, {kPlain, kPlain, kPlain}));
  CHECK(isOverThreads(2, {wire::kAnswersFaults, kPlain, wire::kAnswersFaults, kPlain}));
}

// The memory of a session with a fault stays where it is.
TEST_CASE("a fault is noted when its call runs, and a client cannot invent one") {
  Fixture& test = Fixture::make();
  test.session->driver.cuCtxSetCacheConfig = [](CUfunc_cache) { return CUDA_ERROR_LAUNCH_FAILED; };
  auto channel = wire::ClientChannel::create();
  auto* const shared = static_cast<wire::ChannelMemory*>(mmap(
      nullptr, wire::kChannelFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, channel->file(), 0));
  REQUIRE(shared != MAP_FAILED);
  std::thread server([&, end = wire::WorkerChannel::attach(channel->file())]() mutable {
    worker::Thread(*test.session, std::move(end)).serve();
  });
  const auto allocate = [&](std::uint64_t ticket) {
    publish(*channel, CallNumber::cuMemAlloc_v2, ticket, 1, wire::kFrameWantsReply);
    wire::ReplyHeader reply{};
    channel->awaitReply(reply);
    return reply.status;
  };
  shared->deferredError = CUDA_ERROR_ILLEGAL_ADDRESS;
  CHECK(allocate(1) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(allocate(2) == CUDA_SUCCESS);
  CHECK(test.session->fault() == CUDA_SUCCESS);
  publish(*channel, CallNumber::cuCtxSetCacheConfig, 3, 1, 0);
  CHECK(allocate(4) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(test.session->fault() == CUDA_ERROR_LAUNCH_FAILED);
  munmap(shared, wire::kChannelFileBytes);
  channel.reset();
  server.join();
}

// The program gets only the error, so it would never get the memory.
TEST_CASE("a call that returns the error of an earlier call runs, unless it allocates") {
  Fixture& test = Fixture::make();
  allocations = 0;
  auto channel = wire::ClientChannel::create();
  std::thread server([&, end = wire::WorkerChannel::attach(channel->file())]() mutable {
    worker::Thread(*test.session, std::move(end)).serve();
  });
  std::uint64_t ticket = 0;
  const auto call = [&](CallNumber number) {
    publish(*channel, number, ++ticket, 1, wire::kFrameWantsReply);
    wire::ReplyHeader reply{};
    channel->awaitReply(reply);
    return reply.status;
  };
  const auto allocate = [&] { return call(CallNumber::cuMemAlloc_v2); };
  CHECK(allocate() == CUDA_SUCCESS);
  CHECK(allocations == 1);
  publish(*channel, CallNumber::cuCtxDestroy_v2, ++ticket, 12345, 0);  // no such context
  CHECK(allocate() == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(allocations == 1);
  CHECK(allocate() == CUDA_SUCCESS);
  CHECK(allocations == 2);
  const std::uint64_t before = configurations;
  publish(*channel, CallNumber::cuCtxDestroy_v2, ++ticket, 12345, 0);
  CHECK(call(CallNumber::cuCtxSetCacheConfig) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(configurations == before + 1);
  CHECK(channel->takeDeferredError() == 0);
  channel.reset();
  server.join();
}

}  // namespace
