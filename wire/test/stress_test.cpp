// Both ends as threads over one mapping, so that ThreadSanitizer sees every access of both. Several
// clients with a channel each submit frames of random length in one order of tickets; their workers
// obey it, answer, and defer errors. At the end each side ends the other.
#include <doctest/doctest.h>

#include <random>
#include <thread>
#include <vector>

#include "wire/test/shared_mapping.h"
#include "wire/ticket.h"

namespace wire {
namespace {

constexpr int kThreads = 3;
constexpr int kFrames = 20'000;

struct Session {
  TicketCounter tickets;
  TicketTurn turn;
  std::vector<std::uint64_t> served;  // guarded by the turn
};

std::uint64_t checksum(std::uint64_t ticket, std::size_t words) {
  return ticket * 0x9e37'79b9 + words;
}

void runClient(Session& session, SharedMapping& channel, unsigned seed) {
  std::mt19937 random(seed);
  std::int64_t errors = 0, deferred = 0;
  for (int i = 0; i < kFrames; ++i) {
    const std::size_t words = random() % 1000 == 0 ? random() % 4000 : random() % 40;
    const bool waits = random() % 8 == 0;
    Encoder encoder = channel.client->begin((words + 2) * 8);
    CHECK(!encoder.failed());
    const std::uint64_t ticket = random() % 10 == 0 ? 0 : session.tickets.take();
    encoder.put<std::uint64_t>(words);
    for (std::size_t word = 0; word <= words; ++word) encoder.put(checksum(ticket, words));
    channel.client->publish(encoder, 1, waits ? kFrameWantsReply : 0, ticket);
    errors += !waits && words == 3;
    if (!waits) continue;
    ReplyHeader header;
    Decoder reply = channel.client->awaitReply(header);
    CHECK(header.status == static_cast<std::int32_t>(words));
    CHECK(header.text == ticket);
    CHECK(reply.get<std::uint64_t>() == checksum(ticket, words));
    CHECK(reply.finished());
    const bool expected = errors != deferred;
    CHECK((channel.client->takeDeferredError() == 3) == expected);
    deferred = errors;
  }
}

void runWorker(Session& session, SharedMapping& channel) {
  FrameHeader header;
  Decoder payload;
  while (channel.worker->next(header, payload)) {
    const auto words = payload.get<std::uint64_t>();
    std::uint64_t wrong = 0;
    for (std::uint64_t word = 0; word <= words; ++word)
      wrong += payload.get<std::uint64_t>() != checksum(header.ticket, words);
    CHECK(wrong == 0);
    CHECK(payload.finished());
    CHECK(session.turn.await(header.ticket));
    if (header.ticket != 0) session.served.push_back(header.ticket);
    session.turn.pass(header.ticket);
    if (!(header.flags & kFrameWantsReply) && words == 3) channel.worker->deferError(3);
    Encoder reply = channel.worker->replyEncoder();
    if (header.flags & kFrameWantsReply) reply.put(checksum(header.ticket, words));
    channel.worker->reply(reply, static_cast<std::int32_t>(words), header.ticket);
  }
  CHECK(channel.worker->end() == ChannelEnd::drained);
}

TEST_CASE("threads submit in the order of their tickets") {
  registerForProcessBarriers();
  Session session;
  std::vector<SharedMapping> channels(kThreads);
  std::vector<std::thread> clients, workers;
  for (int i = 0; i < kThreads; ++i) {
    workers.emplace_back([&, i] { runWorker(session, channels[i]); });
    clients.emplace_back([&, i] { runClient(session, channels[i], i + 1); });
  }
  for (auto& client : clients) client.join();
  const std::uint64_t next = session.tickets.take();
  CHECK(session.turn.await(next));
  CHECK(session.served.size() == next / kTicket - 1);
  for (std::size_t i = 0; i < session.served.size(); ++i)
    CHECK(session.served[i] == (i + 1) * kTicket);
  for (auto& channel : channels) channel.worker->drain();
  for (auto& worker : workers) worker.join();
}

// The end comes while both are busy with each other, or both asleep.
TEST_CASE("drain() and abandon() end every wait") {
  registerForProcessBarriers();
  for (int round = 0; round < 100; ++round) {
    SharedMapping channel;
    std::atomic<int> frames{0};
    std::thread client([&] {
      ReplyHeader header;
      for (Encoder frame = channel.client->begin(8); !frame.failed();
           frame = channel.client->begin(8)) {
        channel.client->publish(frame, 1, kFrameWantsReply, 0);
        if (!channel.client->awaitReply(header).ok()) return;
      }
    });
    std::thread worker([&] {
      FrameHeader header;
      Decoder payload;
      for (; channel.worker->next(header, payload); ++frames) {
        if (round % 4 != 0) channel.worker->reply(channel.worker->replyEncoder(), 0, 0);
      }
    });
    while (frames < (round % 4 == 0 ? 1 : round)) std::this_thread::yield();
    channel.worker->drain();
    worker.join();
    channel.client->abandon();
    client.join();
  }
}

}  // namespace
}  // namespace wire
