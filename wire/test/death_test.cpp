// Each end is a process that is killed at some moment. The other end is told, as the session tells
// it, and stops waiting at once.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <random>
#include <thread>

#include "wire/channel.h"

namespace wire {
namespace {

constexpr int kDeaths = 40;
constexpr std::uint32_t kSeed = 7;
constexpr std::size_t kBytes = 64;
constexpr std::uint64_t kFrames = 3000;

template <class Body>
pid_t process(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  return child;
}

/// Frames that this end has seen or sent.
std::atomic<std::uint64_t> progress{0};

/// Kills the process after that many frames, then tells this end.
template <class Tell>
std::thread executioner(pid_t victim, std::uint64_t frames, Tell tell) {
  progress = 0;
  return std::thread([=] {
    while (progress < frames) std::this_thread::yield();
    kill(victim, SIGKILL);
    waitpid(victim, nullptr, 0);
    tell();
  });
}

void send(ClientChannel& client, std::uint64_t number, std::uint16_t flags) {
  Encoder encoder = client.begin(kBytes);
  if (encoder.failed()) return;
  for (std::size_t i = 0; i < kBytes / 8; ++i) encoder.put(number);
  client.publish(encoder, 1, flags, number);
}

TEST_CASE("a worker sees only whole frames of a client that is killed") {
  std::mt19937 random(kSeed);
  for (int death = 0; death < kDeaths; ++death) {
    const auto client = ClientChannel::create();
    const auto worker = WorkerChannel::attach(client->file());
    const std::uint16_t flags = death % 2 == 0 ? kFrameWantsReply : 0;
    const pid_t child = process([&] {
      ReplyHeader header;
      for (std::uint64_t number = 1;; ++number) {
        send(*client, number, flags);
        if (flags != 0 && !client->awaitReply(header).ok()) return;
      }
    });
    std::thread end = executioner(child, random() % kFrames, [&] { worker->drain(); });
    FrameHeader header;
    Decoder payload;
    for (std::uint64_t number = 1; worker->next(header, payload); ++number) {
      ++progress;
      CHECK(header.ticket == number);
      for (std::size_t i = 0; i < kBytes / 8; ++i) CHECK(payload.get<std::uint64_t>() == number);
      CHECK(payload.finished());
      worker->reply(worker->replyEncoder(), 0, 0);
    }
    CHECK(worker->end() == ChannelEnd::drained);
    end.join();
  }
}

TEST_CASE("a client stops waiting for a worker that is killed") {
  std::mt19937 random(kSeed);
  for (int death = 0; death < kDeaths; ++death) {
    const auto client = ClientChannel::create();
    const std::uint16_t flags = death % 2 == 0 ? kFrameWantsReply : 0;
    const pid_t child = process([&] {
      const auto worker = WorkerChannel::attach(client->file());
      FrameHeader header;
      Decoder payload;
      while (worker->next(header, payload)) worker->reply(worker->replyEncoder(), 0, 0);
    });
    std::thread end = executioner(child, random() % kFrames, [&] { client->abandon(); });
    ReplyHeader header;
    for (std::uint64_t number = 1; !client->begin(kBytes).failed();
         ++number) {  // abandon() ends the wait for room in a full ring
      send(*client, number, flags);
      if (flags != 0 && !client->awaitReply(header).ok()) break;
      ++progress;
    }
    end.join();
    CHECK(client->begin(0).failed());
  }
}

TEST_CASE("a forked child does not close its parent's channel") {
  auto client = ClientChannel::create();
  const auto worker = WorkerChannel::attach(client->file());
  const pid_t child = process([&] { client.reset(); });
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  send(*client, 1, 0);
  FrameHeader header;
  Decoder payload;
  CHECK(worker->next(header, payload));
  CHECK(header.ticket == 1);
  send(*client, 2, 0);
  client.reset();
  CHECK(worker->next(header, payload));
  CHECK(header.ticket == 2);
  CHECK(!worker->next(header, payload));
  CHECK(worker->end() == ChannelEnd::closed);
}

}  // namespace
}  // namespace wire
