// A peer that writes anything anywhere: neither end crashes, reads outside of the channel, or waits
// after it was told to end.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "test/unit/waiting.h"
#include "wire/channel.h"
#include "wire/channel_memory.h"

namespace wire {
namespace {

constexpr std::uint64_t kGarbage[] = {1,
                                      7,
                                      8,
                                      15,
                                      16,
                                      24,
                                      64,
                                      kRequestBytes - 64,
                                      kRequestBytes,
                                      kRequestBytes + 64,
                                      1 << 24,
                                      1u << 31,
                                      ~0u,
                                      1ull << 32,
                                      1ull << 63,
                                      ~63ull,
                                      ~7ull,
                                      ~0ull};

// Both ends, and a third mapping through which the test writes as a hostile peer does. It has other
// addresses, so ThreadSanitizer does not report these writes.
struct Scene {
  std::unique_ptr<ClientChannel> client = ClientChannel::create();
  std::unique_ptr<WorkerChannel> worker = WorkerChannel::attach(client->file());
  ChannelMemory* memory = mapChannel(client->file());
  FrameHeader header{};
  Decoder payload;

  Scene() = default;
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
  ~Scene() { unmapChannel(memory); }

  void send(std::size_t bytes, std::uint16_t flags = 0) {
    Encoder encoder = client->begin(bytes);
    encoder.putSpace(bytes - sizeof(std::uint64_t));
    client->publish(encoder, 1, flags, 0);
  }
};

TEST_CASE("a frame with a false length ends the session") {
  for (const std::uint64_t length : kGarbage) {
    const auto claimed = static_cast<std::uint32_t>(length);
    const bool honest = claimed == 16 || claimed == 24 || claimed == 64;
    Scene scene;
    scene.send(64 - sizeof(FrameHeader));
    std::memcpy(scene.memory->ring, &claimed, sizeof(claimed));
    CHECK(scene.worker->next(scene.header, scene.payload) == honest);
    CHECK((honest ? scene.payload.remaining() == claimed - sizeof(FrameHeader)
                  : scene.worker->end() == ChannelEnd::nonsense));
  }
}

// The last frame of a lap: the worker reads on in the second mapping of the ring.
TEST_CASE("a frame that claims more than was published stays in the ring") {
  Scene scene;
  constexpr std::size_t kPayload = 4096 - sizeof(FrameHeader);
  for (std::size_t sent = 0; sent + 4096 < kRequestBytes; sent += 4096) {
    scene.send(kPayload);
    CHECK(scene.worker->next(scene.header, scene.payload));
  }
  scene.send(kPayload);
  const std::uint32_t claimed = kMaxFrameBytes;
  std::memcpy(scene.memory->at(kRequestBytes - 4096), &claimed, sizeof(claimed));
  CHECK(scene.worker->next(scene.header, scene.payload));
  CHECK(scene.payload.remaining() == kMaxFrameBytes - sizeof(FrameHeader));
}

TEST_CASE("a false head makes the client fail") {
  constexpr std::size_t kPayload = 4096;
  for (const std::uint64_t head : {kRequestBytes * 8, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    Scene scene;
    for (std::size_t sent = 0; sent + 2 * kPayload < kRequestBytes;
         sent += frameSpan(sizeof(FrameHeader) + kPayload))
      scene.send(kPayload);
    scene.memory->head.store(head);
    CHECK(scene.client->begin(kMaxFrameBytes / 2).failed());
  }
}

TEST_CASE("a reply with a false length makes the decoder fail") {
  for (const std::uint64_t length : kGarbage) {
    Scene scene;
    scene.send(16, kFrameWantsReply);
    CHECK(scene.worker->next(scene.header, scene.payload));
    scene.memory->replyHeader.length = static_cast<std::uint32_t>(length);
    scene.memory->replies.store(1);
    const std::uint32_t claimed = scene.memory->replyHeader.length;
    ReplyHeader reply;
    const Decoder decoder = scene.client->awaitReply(reply);
    CHECK(decoder.ok() == (claimed >= sizeof(ReplyHeader) && claimed <= kReplyBytes));
  }
}

TEST_CASE("a false count of replies is no reply") {
  Scene scene;
  scene.send(16, kFrameWantsReply);
  scene.memory->replies.store(5);
  std::thread end([&, client = unit::threadId()] {
    CHECK(unit::comesTrue([&] { return unit::isAsleep(client); }));
    scene.client->abandon();
  });
  ReplyHeader reply;
  CHECK(!scene.client->awaitReply(reply).ok());
  end.join();
}

// A faked sleep costs the other end a system call. (A denied sleep delays only the frames of the
// end that denies it.)
TEST_CASE("a faked sleep delays no reply") {
  for (const std::uint64_t flag : kGarbage) {
    if (static_cast<std::uint32_t>(flag) == 0) continue;
    Scene scene;
    std::thread worker([&] {
      while (scene.worker->next(scene.header, scene.payload))
        scene.worker->reply(scene.worker->replyEncoder(), 0, 0);
    });
    for (int i = 0; i < 50; ++i) {
      scene.memory->workerSeat.sleeps.store(static_cast<std::uint32_t>(flag));
      scene.memory->clientSeat.sleeps.store(static_cast<std::uint32_t>(flag));
      scene.memory->workerSeat.processor.store(static_cast<std::uint32_t>(flag >> i % 8));
      scene.send(16, kFrameWantsReply);
      ReplyHeader reply;
      CHECK(scene.client->awaitReply(reply).ok());
    }
    scene.worker->drain();
    worker.join();
  }
}

void scribble(ChannelMemory& memory, std::mt19937_64& random) {
  const std::uint64_t number = random();
  const auto length = static_cast<std::uint32_t>(number >> 32) % (2 * kMaxFrameBytes) & ~7u;
  std::memcpy(memory.at(number % 4096 * kFrameAlignment), &length, sizeof(length));
  if (number % 64 == 0) memory.firstWord(memory.head.load()).store(length);
  if (number % 50'000 == 0) memory.firstWord(memory.head.load()).store(number);
}

// While the worker reads, another thread writes random words to everything that a client may write.
TEST_CASE("a client that overwrites its memory at random harms only its session") {
  std::mt19937_64 random(20260101);
  for (int round = 0; round < 60; ++round) {
    Scene scene;
    std::thread scribbler([&, seed = random()] {
      std::mt19937_64 numbers(seed);
      for (int i = 0; i < 100'000; ++i) scribble(*scene.memory, numbers);
      scene.worker->drain();
    });
    while (scene.worker->next(scene.header, scene.payload)) {
      CHECK(scene.payload.remaining() + sizeof(FrameHeader) == scene.header.length);
      CHECK(scene.header.length <= kMaxFrameBytes);
      CHECK(scene.payload.getBytes(kMaxFrameBytes).size() < kMaxFrameBytes);
    }
    CHECK((scene.worker->end() == ChannelEnd::nonsense ||
           scene.worker->end() == ChannelEnd::drained));
    scribbler.join();
  }
}

}  // namespace
}  // namespace wire
