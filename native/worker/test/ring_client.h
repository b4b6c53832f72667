// One thread of a client without the interposer, with the worker's thread that serves it.
#pragma once

#include <memory>
#include <thread>
#include <utility>

#include "native/worker/test/session_fixture.h"

namespace worker::test {

class RingClient {
 public:
  explicit RingClient(Session& session) : channel_(wire::ClientChannel::create()) {
    auto end = wire::WorkerChannel::attach(channel_->file());
    server_ = std::thread([&session, owned = std::move(end)]() mutable {
      Thread(session, std::move(owned)).serve();
    });
  }
  ~RingClient() {
    channel_.reset();
    server_.join();
  }
  RingClient(const RingClient&) = delete;
  RingClient& operator=(const RingClient&) = delete;

  template <class Encode>
  Reply send(CallNumber number, std::uint64_t ticket, std::uint16_t flags, Encode encode) {
    publish(number, ticket, flags | wire::kFrameWantsReply, encode);
    wire::ReplyHeader header{};
    wire::Decoder reply = channel_->awaitReply(header);
    const auto first = reply.get<std::uint64_t>();
    return {static_cast<CUresult>(header.status), first, reply.get<std::uint64_t>()};
  }

  template <class Encode>
  void publish(CallNumber number, std::uint64_t ticket, std::uint16_t flags, Encode encode) {
    wire::Encoder frame = channel_->begin(4096);
    encode(frame);
    channel_->publish(frame, static_cast<std::uint16_t>(number), flags, ticket);
  }
  void publish(CallNumber number, std::uint64_t ticket, std::uint16_t flags = 0) {
    publish(number, ticket, flags, [](wire::Encoder&) {});
  }

 private:
  std::unique_ptr<wire::ClientChannel> channel_;
  std::thread server_;
};

}  // namespace worker::test
