// A peer that writes anything anywhere: neither end crashes, reads outside the channel, or waits
// when it was told to end.
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "wire/channel.h"
#include "wire/channel_memory.h"
#include "wire/test/check.h"

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

// Both ends, and a third view of the memory through which the test plays either end's malice. Its
// addresses are others, so ThreadSanitizer does not mistake the malice for a mistake.
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

void aFalseLengthEndsTheSession() {
  for (const std::uint64_t length : kGarbage) {
    const auto claimed = static_cast<std::uint32_t>(length);
    const bool honest = claimed == 16 || claimed == 24 || claimed == 64;
    Scene scene;
    scene.send(64 - sizeof(FrameHeader));
    std::memcpy(scene.memory->ring, &claimed, sizeof(claimed));
    CHECK(scene.worker->next(scene.header, scene.payload) == honest);
    CHECK(honest ? scene.payload.remaining() == claimed - sizeof(FrameHeader)
                 : scene.worker->end() == ChannelEnd::nonsense);
  }
}

// The last frame of a lap claims far more than was published: what the worker reads is still the
// ring, in its second mapping.
void aFrameLongerThanWhatIsPublishedStaysInTheRing() {
  Scene scene;
  constexpr std::size_t kPayload = 4096 - sizeof(FrameHeader);
  for (std::size_t sent = 0; sent + 4096 < kRequestBytes; sent += 4096) {
    scene.send(kPayload);
    CHECK(scene.worker->next(scene.header, scene.payload));
  }
  scene.send(kPayload);
  const std::uint32_t claimed = kMaxFrameBytes;
  std::memcpy(scene.memory->at(kRequestBytes - 4096), &claimed, sizeof(claimed));
  CHECK(scene.worker->next(scene.header, scene.payload) &&
        scene.payload.remaining() == kMaxFrameBytes - sizeof(FrameHeader));
}

void aFalseHeadMakesTheClientFail() {
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

void aFalseReplyMakesTheDecoderFail() {
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

void aFalseCountOfRepliesIsNoReply() {
  Scene scene;
  scene.send(16, kFrameWantsReply);
  scene.memory->replies.store(5);
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    scene.client->abandon();
  });
  ReplyHeader reply;
  CHECK(!scene.client->awaitReply(reply).ok());
  end.join();
}

// Sleep is faked, for every reason there is and some there are not: it costs the other a system
// call. (Sleep that is denied only keeps the frames of the one who denies it waiting.)
void falseSleepDelaysNobody() {
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
    scene.worker->stop();
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

// While the worker reads, another thread writes random words over everything that a client may
// write.
void aScribblingClientHarmsNobody() {
  std::mt19937_64 random(20260101);
  for (int round = 0; round < 60; ++round) {
    Scene scene;
    std::thread scribbler([&, seed = random()] {
      std::mt19937_64 numbers(seed);
      for (int i = 0; i < 100'000; ++i) scribble(*scene.memory, numbers);
      scene.worker->stop();
    });
    while (scene.worker->next(scene.header, scene.payload)) {
      CHECK(scene.payload.remaining() + sizeof(FrameHeader) == scene.header.length &&
            scene.header.length <= kMaxFrameBytes);
      CHECK(scene.payload.getBytes(kMaxFrameBytes).size() < kMaxFrameBytes);
    }
    CHECK(scene.worker->end() == ChannelEnd::nonsense ||
          scene.worker->end() == ChannelEnd::stopped);
    scribbler.join();
  }
}

}  // namespace
}  // namespace wire

int main() {
  wire::aFalseLengthEndsTheSession();
  wire::aFrameLongerThanWhatIsPublishedStaysInTheRing();
  wire::aFalseHeadMakesTheClientFail();
  wire::aFalseReplyMakesTheDecoderFail();
  wire::aFalseCountOfRepliesIsNoReply();
  wire::falseSleepDelaysNobody();
  wire::aScribblingClientHarmsNobody();
  return wire::test::checkedResult();
}
