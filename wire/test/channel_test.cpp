// One client and one worker over two mappings of the channel's file, as between two processes:
// frames, replies, a full ring, deferred errors.
#include "wire/channel.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <numeric>
#include <thread>
#include <vector>

#include "test/unit/waiting.h"
#include "wire/channel_memory.h"
#include "wire/test/shared_mapping.h"

namespace wire {
namespace {

struct Pair {
  std::unique_ptr<ClientChannel> client = ClientChannel::create();
  std::unique_ptr<WorkerChannel> worker = WorkerChannel::attach(client->file());
};

void send(ClientChannel& client, std::size_t bytes, std::uint16_t call, std::uint16_t flags = 0,
          std::uint64_t ticket = 0) {
  Encoder encoder = client.begin(bytes);
  for (std::size_t i = 0; i < bytes / 8; ++i) encoder.put<std::uint64_t>(call + i);
  client.publish(encoder, call, flags, ticket);
}

bool holds(Decoder payload, std::size_t bytes, std::uint16_t call) {
  for (std::size_t i = 0; i < bytes / 8; ++i) {
    if (payload.get<std::uint64_t>() != call + i) return false;
  }
  return payload.finished();
}

TEST_CASE("frames arrive in order, with their header") {
  Pair pair;
  send(*pair.client, 0, 1, 0, 7);
  send(*pair.client, 64, 2, kFrameWantsReply, 8);
  FrameHeader header;
  Decoder payload;
  CHECK(pair.worker->next(header, payload));
  CHECK(header.call == 1);
  CHECK(header.flags == 0);
  CHECK(header.ticket == 7);
  CHECK(header.length == 16);
  CHECK(payload.finished());
  CHECK(pair.worker->next(header, payload));
  CHECK(header.call == 2);
  CHECK(header.flags == kFrameWantsReply);
  CHECK(header.ticket == 8);
  CHECK(holds(payload, 64, 2));
}

TEST_CASE("the longest frame arrives in one piece across the end of the ring") {
  Pair pair;
  constexpr std::size_t kLongest = kMaxFrameBytes - sizeof(FrameHeader);
  for (std::uint16_t i = 0; i < 50; ++i) {
    send(*pair.client, kLongest, i);
    FrameHeader header;
    Decoder payload;
    CHECK(pair.worker->next(header, payload));
    CHECK(header.length == kMaxFrameBytes);
    CHECK(holds(payload, kLongest, i));
  }
  CHECK(pair.client->begin(kLongest + 1).failed());
  CHECK(!pair.client->begin(kLongest).failed());
}

TEST_CASE("a frame ends with what was written, and one that is too long is not published") {
  Pair pair;
  Encoder encoder = pair.client->begin(4096);
  encoder.put<std::uint8_t>(1);
  pair.client->publish(encoder, 3, 0, 0);
  Encoder tooLong = pair.client->begin(8);
  tooLong.put<std::uint64_t>(1);
  tooLong.put<std::uint64_t>(2);
  CHECK(tooLong.failed());
  pair.client->publish(tooLong, 4, 0, 0);
  send(*pair.client, 8, 5);
  FrameHeader header;
  Decoder payload;
  CHECK(pair.worker->next(header, payload));
  CHECK(header.call == 3);
  CHECK(header.length == 24);
  CHECK(pair.worker->next(header, payload));
  CHECK(header.call == 5);
}

TEST_CASE("each frame that wants a reply gets its own") {
  Pair pair;
  std::thread worker([&] {
    FrameHeader header;
    Decoder payload;
    while (pair.worker->next(header, payload)) {
      Encoder encoder = pair.worker->replyEncoder();
      encoder.put<std::uint64_t>(payload.get<std::uint64_t>() + 1);
      pair.worker->reply(encoder, header.call, header.ticket);
    }
  });
  for (std::uint16_t i = 0; i < 1000; ++i) {
    send(*pair.client, 8, i);  // no reply is sent for this one, though the worker makes one
    send(*pair.client, 8, i, kFrameWantsReply, 5);
    ReplyHeader header;
    Decoder reply = pair.client->awaitReply(header);
    CHECK(header.status == i);
    CHECK(header.text == 5);
    CHECK(header.length == 24);
    CHECK(reply.get<std::uint64_t>() == i + 1u);
    CHECK(reply.finished());
  }
  pair.client.reset();
  worker.join();
  CHECK(pair.worker->end() == ChannelEnd::closed);
}

TEST_CASE("a wait ends when the GPU tells so, and its reply comes later") {
  Pair pair;
  FrameHeader frame;
  Decoder payload;
  ReplyHeader header;
  for (int i = 0; i < 3; ++i) {
    send(*pair.client, 0, 1, kFrameWantsReply);
    REQUIRE(pair.worker->next(frame, payload));
    const WorkerChannel::EndOfWait end = pair.worker->endOfWait();
    end.word->store(end.number);  // a client that sleeps notices it only with the reply
    CHECK(pair.client->awaitReply(header, true).finished());
    CHECK(header.status == 0);
    // The reply to the next frame is another, also while this one is still to come.
    CHECK_FALSE(pair.worker->hasMore());
    send(*pair.client, 0, 2, kFrameWantsReply);
    CHECK(pair.worker->hasMore());
    pair.worker->reply(pair.worker->replyEncoder(), 5, 0);
    REQUIRE(pair.worker->next(frame, payload));
    CHECK(frame.call == 2);
    std::thread worker([&] { pair.worker->reply(pair.worker->replyEncoder(), 7, 0); });
    CHECK(pair.client->awaitReply(header, true).finished());
    CHECK(header.status == 7);
    worker.join();
  }
}

TEST_CASE("only a wait ends when the GPU tells so") {
  Pair pair;
  FrameHeader frame;
  Decoder payload;
  ReplyHeader header;
  send(*pair.client, 0, 1, kFrameWantsReply);
  REQUIRE(pair.worker->next(frame, payload));
  const WorkerChannel::EndOfWait end = pair.worker->endOfWait();
  end.word->store(end.number);
  std::thread worker([&] { pair.worker->reply(pair.worker->replyEncoder(), 7, 0); });
  CHECK(pair.client->awaitReply(header).finished());
  CHECK(header.status == 7);
  worker.join();
}

TEST_CASE("a reply of full length arrives, and a longer one arrives empty") {
  Pair pair;
  FrameHeader frame;
  Decoder payload;
  ReplyHeader header;
  std::vector<std::byte> long_(kReplyBytes - sizeof(ReplyHeader) - 8, std::byte{7});
  send(*pair.client, 0, 1, kFrameWantsReply);
  CHECK(pair.worker->next(frame, payload));
  Encoder fits = pair.worker->replyEncoder();
  fits.putBytes(long_.data(), long_.size());
  pair.worker->reply(fits, 0, 0);
  Decoder reply = pair.client->awaitReply(header);
  CHECK(header.length == kReplyBytes);
  CHECK(reply.getBytes(kReplyBytes).size() == long_.size());
  CHECK(reply.finished());

  send(*pair.client, 0, 1, kFrameWantsReply);
  CHECK(pair.worker->next(frame, payload));
  Encoder tooLong = pair.worker->replyEncoder();
  tooLong.putBytes(long_.data(), long_.size());
  tooLong.put(1);
  pair.worker->reply(tooLong, 0, 0);
  reply = pair.client->awaitReply(header);
  CHECK(reply.finished());
  CHECK(header.length == sizeof(ReplyHeader));
}

std::uint64_t memoryBytes(int file) {
  struct stat status;
  CHECK(fstat(file, &status) == 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

// Linux 5.14 and newer.
TEST_CASE("pages of the ring are created ahead of the frames, and no more than the ring has") {
  constexpr std::uint64_t kAhead = std::uint64_t{64} << 10;
  Pair pair;
  FrameHeader header;
  Decoder payload;
  const std::uint64_t before = memoryBytes(pair.client->file());
  send(*pair.client, 4096, 1);
  CHECK(pair.worker->next(header, payload));
  const std::uint64_t begun = memoryBytes(pair.client->file());
  CHECK(begun >= before + kAhead);
  for (std::uint64_t sent = 4096; sent + 8192 < kAhead; sent += 8192) {
    send(*pair.client, 4096, 2);
    CHECK(pair.worker->next(header, payload));
  }
  CHECK(memoryBytes(pair.client->file()) == begun);
  for (std::uint64_t sent = 0; sent < 2 * kRequestBytes; sent += 4096) {
    send(*pair.client, 4096, 3);
    CHECK(pair.worker->next(header, payload));
    CHECK(holds(payload, 4096, 3));
  }
  CHECK(memoryBytes(pair.client->file()) <= kChannelFileBytes);
}

TEST_CASE("a client waits while the ring is full") {
  Pair pair;
  constexpr std::size_t kFrames = 5000, kBytes = 1000 / 8 * 8;
  std::thread worker([&, client = unit::threadId()] {
    CHECK(unit::comesTrue([&] { return unit::isAsleep(client); }));  // behind the full ring
    FrameHeader header;
    Decoder payload;
    for (std::size_t i = 0; i < kFrames; ++i) {
      CHECK(pair.worker->next(header, payload));
      CHECK(header.call == static_cast<std::uint16_t>(i));
      CHECK(holds(payload, kBytes, header.call));
    }
  });
  for (std::size_t i = 0; i < kFrames; ++i)
    send(*pair.client, kBytes, static_cast<std::uint16_t>(i));
  worker.join();
}

TEST_CASE("a frame wakes a sleeping worker, and a reply a sleeping client") {
  Pair pair;
  const unit::Waiter worker([&, client = unit::threadId()] {
    FrameHeader header;
    Decoder payload;
    while (pair.worker->next(header, payload)) {
      CHECK(unit::comesTrue([&] { return unit::isAsleep(client); }));
      pair.worker->reply(pair.worker->replyEncoder(), 0, 0);
    }
  });
  for (int i = 0; i < 20; ++i) {
    CHECK(worker.waits());
    send(*pair.client, 8, 1, kFrameWantsReply);
    ReplyHeader header;
    CHECK(pair.client->awaitReply(header).finished());
  }
  pair.worker->drain();
  CHECK(unit::comesTrue([&] { return worker.ended(); }));
  CHECK(pair.worker->end() == ChannelEnd::drained);
}

TEST_CASE("an end that is woken learns on which processor the other one is") {
  constexpr std::uint32_t kNone = 1U << 30;
  SharedMapping scene;
  scene.memory().clientSeat.processor = kNone;
  send(*scene.client, 8, 1);
  CHECK(scene.memory().clientSeat.processor == kNone);  // the worker is awake
  scene.memory().workerSeat.sleeps = kSleepsForFrame;
  send(*scene.client, 8, 2, kFrameWantsReply);
  CHECK(scene.memory().clientSeat.processor != kNone);
  scene.memory().workerSeat.processor = kNone;
  scene.memory().clientSeat.sleeps = kSleepsForReply;
  FrameHeader header;
  Decoder payload;
  for (int i = 0; i < 2; ++i) REQUIRE(scene.worker->next(header, payload));
  scene.worker->reply(scene.worker->replyEncoder(), 0, 0);
  CHECK(scene.memory().workerSeat.processor != kNone);
}

TEST_CASE("a client sleeps behind many frames, and wakes before its reply comes") {
  SharedMapping scene;
  constexpr std::uint16_t kFrames = 600;
  const auto reason = [&] { return scene.memory().clientSeat.sleeps.load(); };
  std::thread worker([&] {
    CHECK(unit::comesTrue([&] { return reason() == kSleepsForRoom; }));
    FrameHeader header;
    Decoder payload;
    for (std::uint16_t i = 1; i < kFrames; ++i) CHECK(scene.worker->next(header, payload));
    CHECK(unit::comesTrue([&] { return reason() != kSleepsForRoom; }));
    CHECK(scene.worker->next(header, payload));
    scene.worker->reply(scene.worker->replyEncoder(), 0, 0);
  });
  for (std::uint16_t i = 1; i < kFrames; ++i) send(*scene.client, 8, i);
  send(*scene.client, 8, kFrames, kFrameWantsReply);
  ReplyHeader header;
  CHECK(scene.client->awaitReply(header).finished());
  worker.join();
}

TEST_CASE("drain() leaves what lies in the ring to be read") {
  Pair pair;
  for (std::uint16_t call = 1; call <= 3; ++call) send(*pair.client, 64, call);
  pair.worker->drain();
  FrameHeader header;
  Decoder payload;
  for (std::uint16_t call = 1; call <= 3; ++call) {
    CHECK(pair.worker->next(header, payload));
    CHECK(header.call == call);
    CHECK(holds(payload, 64, call));
  }
  CHECK_FALSE(pair.worker->next(header, payload));
  CHECK(pair.worker->end() == ChannelEnd::drained);
}

TEST_CASE("after drain() no more is read than a ring holds, though a forked child writes on") {
  Pair pair;
  constexpr std::size_t kBytes = 1024;
  pair.worker->drain();
  FrameHeader header;
  Decoder payload;
  std::size_t frames = 0;
  for (;; ++frames) {
    send(*pair.client, kBytes, 1);
    if (!pair.worker->next(header, payload)) break;
  }
  CHECK(pair.worker->end() == ChannelEnd::drained);
  CHECK(frames > 0);
  CHECK(frames <= kRequestBytes / kBytes);
}

TEST_CASE("the first deferred error is kept until the client takes it") {
  Pair pair;
  CHECK(pair.client->takeDeferredError() == 0);
  pair.worker->deferError(700);
  pair.worker->deferError(719);
  CHECK(pair.client->takeDeferredError() == 700);
  CHECK(pair.client->takeDeferredError() == 0);
  pair.worker->deferError(719);
  CHECK(pair.client->takeDeferredError() == 719);
}

TEST_CASE("a worker attaches only to a file of the right size and seals") {
  const auto attaches = [](int file) { return WorkerChannel::attach(file) != nullptr; };
  CHECK(!attaches(-1));
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  CHECK(!attaches(null));
  close(null);
  for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW,
                          F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_WRITE}) {
    const int file = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(ftruncate(file, kChannelFileBytes) == 0);
    CHECK(fcntl(file, F_ADD_SEALS, seals) == 0);
    CHECK(!attaches(file));
    close(file);
  }
  const int file = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(ftruncate(file, kChannelFileBytes - 4096) == 0);
  CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  CHECK(!attaches(file));
  close(file);
  const int good = createChannelFile();
  CHECK(attaches(good));
  CHECK(ftruncate(good, 0) != 0);
  CHECK(errno == EPERM);
  close(good);
}

}  // namespace
}  // namespace wire
