// A channel with arbitrary memory: the worker reads data of a hostile client, the client data of a
// hostile worker. Neither reads out of bounds, returns more than there is, or waits while the peer
// has data.
#include <fuzzer/FuzzedDataProvider.h>

#include "test/fuzz/require.h"
#include "wire/test/shared_mapping.h"

namespace {

void writeRing(wire::ChannelMemory& memory, FuzzedDataProvider& input) {
  const std::uint64_t position = input.ConsumeIntegral<std::uint16_t>() * std::uint64_t{8};
  const std::vector<std::uint8_t> bytes =
      input.ConsumeBytes<std::uint8_t>(input.ConsumeIntegralInRange<std::size_t>(0, 64));
  if (!bytes.empty()) std::memcpy(memory.at(position), bytes.data(), bytes.size());
}

void writeHeader(wire::SharedMapping& channel, FuzzedDataProvider& input) {
  const std::uint64_t position =
      channel.memory().head.load() +
      input.ConsumeIntegralInRange<std::uint64_t>(0, 4) * wire::kFrameAlignment;
  const wire::FrameHeader header{input.ConsumeIntegral<std::uint32_t>(), 1,
                                 input.ConsumeIntegral<std::uint16_t>(), 0};
  std::memcpy(channel.memory().at(position), &header, sizeof(header));
}

void writeWord(wire::ChannelMemory& memory, FuzzedDataProvider& input) {
  const auto value = input.ConsumeIntegral<std::uint64_t>();
  switch (input.ConsumeIntegralInRange(0, 6)) {
    case 0:
      memory.firstWord(memory.head.load() & ~std::uint64_t{wire::kFrameAlignment - 1}).store(value);
      break;  // the head may be false
    case 1: memory.wakeAtHead.store(memory.head.load() + value % (2 * wire::kRequestBytes)); break;
    case 2: memory.head.store(value); break;
    case 3: memory.workerSeat.sleeps.store(static_cast<std::uint32_t>(value)); break;
    case 4: memory.clientSeat.sleeps.store(static_cast<std::uint32_t>(value)); break;
    case 5: memory.workerSeat.processor.store(static_cast<std::uint32_t>(value)); break;
    default: memory.deferredError.store(static_cast<std::int32_t>(value));
  }
}

void readFrame(wire::SharedMapping& channel, std::size_t replyBytes) {
  wire::FrameHeader header;
  wire::Decoder payload;
  if (channel.idle() || !channel.worker->next(header, payload)) return;
  REQUIRE(header.length <= wire::kMaxFrameBytes &&
          payload.remaining() == header.length - sizeof(header));
  payload.getBytes(wire::kMaxFrameBytes);
  wire::Encoder reply = channel.worker->replyEncoder();
  reply.putSpace(replyBytes);
  channel.worker->reply(reply, 0, 0);
  channel.worker->deferError(static_cast<std::int32_t>(header.length));
}

// The words of the reply are false. The client was told that the worker exited, so it does not wait
// for true ones.
void readReply(wire::SharedMapping& channel, FuzzedDataProvider& input) {
  const wire::Encoder frame = channel.client->begin(0);
  channel.client->publish(frame, 1, wire::kFrameWantsReply, 0);
  channel.memory().replies.store(input.ConsumeBool() ? 1 : input.ConsumeIntegral<std::uint32_t>());
  channel.memory().replyHeader.length = input.ConsumeIntegral<std::uint32_t>();
  channel.client->abandon();
  wire::ReplyHeader header;
  wire::Decoder reply = channel.client->awaitReply(header);
  REQUIRE(!reply.ok() || reply.remaining() == header.length - sizeof(header));
  reply.getBytes(wire::kReplyBytes);
  channel.client->takeDeferredError();
  REQUIRE(channel.client->begin(8).failed());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  wire::SharedMapping channel;
  while (input.remaining_bytes() > 0) {
    switch (input.ConsumeIntegralInRange(0, 4)) {
      case 0: writeRing(channel.memory(), input); break;
      case 1: writeHeader(channel, input); break;
      case 2: writeWord(channel.memory(), input); break;
      case 3: readFrame(channel, input.ConsumeIntegral<std::uint32_t>()); break;
      default: readReply(channel, input); return 0;
    }
  }
  return 0;
}
