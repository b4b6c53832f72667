#include <cstring>

#include "wire/channel.h"
#include "wire/channel_memory.h"
#include "wire/wait.h"

namespace wire {

namespace {

// While the client waits for room it is woken once there is plenty, not at every frame.
constexpr std::uint64_t kPlentyOfRoom = kRequestBytes / 2;

// Having caught up with a client that enqueues as fast as this end consumes, the worker lets it write some more in peace: each look at
// the tail takes the line away from the client, who then pays for it at its next frame. Frames that take longer to execute need no rest.
constexpr int kRestPauses = 16;
constexpr std::uint64_t kQuickFrameNanoseconds = 200;

// A frame's lines are with the client. Asked for together they arrive in the time of one: most frames, launches too, are this short.
void prefetchFrame(const std::byte* at) {
  constexpr std::size_t kLine = 64;
  for (std::size_t line = 0; line < 3; ++line) __builtin_prefetch(at + line * kLine);
}

bool isPlausible(const FrameHeader& header, std::uint64_t published) {
  return header.length % 8 == 0 && header.length >= sizeof(header) && header.length <= kMaxFrameBytes &&
         frameSpan(header.length) <= published;
}

}  // namespace

std::unique_ptr<WorkerChannel> WorkerChannel::attach(int file) {
  if (!isChannelFile(file)) return nullptr;
  ChannelMemory* memory = mapChannel(file);
  return memory ? std::unique_ptr<WorkerChannel>(new WorkerChannel(memory)) : nullptr;
}

WorkerChannel::WorkerChannel(ChannelMemory* memory)
    : memory_(memory), frame_(std::make_unique_for_overwrite<std::byte[]>(kMaxFrameBytes)) {}

WorkerChannel::~WorkerChannel() { unmapChannel(memory_); }

bool WorkerChannel::next(FrameHeader& header, Decoder& payload) {
  if (end_ != ChannelEnd::none) return false;
  if (barrier::ended(stopped_)) return ended(ChannelEnd::stopped);
  if (tail_ == head_ && !awaitFrame()) return false;

  const std::byte* at = memory_->at(head_);
  prefetchFrame(at);
  std::memcpy(&header, at, sizeof(header));
  barrier::keepCopy();
  if (!isPlausible(header, tail_ - head_)) return ended(ChannelEnd::nonsense);
  const std::size_t bytes = header.length - sizeof(header);
  std::memcpy(frame_.get(), at + sizeof(header), bytes);
  barrier::keepCopy();

  consume(frameSpan(header.length));
  wantsReply_ = (header.flags & kFrameWantsReply) != 0;
  replied_ = false;
  ++frames_;
  payload = Decoder(frame_.get(), bytes);
  return true;
}

bool WorkerChannel::awaitFrame() {
  if (!replied_) restIfQuick();
  // `closed` is looked at first: what was published before it is then seen.
  const auto settled = [this] {
    const bool closed = barrier::observe(memory_->closed) != 0;
    tail_ = barrier::observe(memory_->tail);
    return tail_ != head_ || closed || barrier::ended(stopped_);
  };
  waitUntil(memory_->workerSeat, memory_->clientSeat, kSleepsForFrame, settled);
  if (barrier::ended(stopped_)) return ended(ChannelEnd::stopped);
  if (tail_ == head_) return ended(ChannelEnd::closed);
  const std::uint64_t published = tail_ - head_;
  return (published <= kRequestBytes && published >= sizeof(FrameHeader)) || ended(ChannelEnd::nonsense);
}

void WorkerChannel::restIfQuick() {
  const std::uint64_t now = monotonicNanoseconds();
  const bool quick = now - caughtUp_ < frames_ * kQuickFrameNanoseconds;
  caughtUp_ = now;
  frames_ = 0;
  for (int i = 0; quick && i < kRestPauses; ++i) pauseProcessor();
}

void WorkerChannel::consume(std::uint64_t bytes) {
  head_ += bytes;
  barrier::publish(memory_->head, head_);
  if (barrier::sleepReason(memory_->clientSeat.sleeps) == kSleepsForRoom && tail_ - head_ <= kPlentyOfRoom)
    wake(memory_->clientSeat.sleeps);
}

bool WorkerChannel::ended(ChannelEnd end) {
  end_ = end;
  return false;
}

Encoder WorkerChannel::replyEncoder() { return Encoder(memory_->replyPayload, sizeof(memory_->replyPayload)); }

void WorkerChannel::reply(const Encoder& encoder, std::int32_t status, std::uint64_t text) {
  if (!wantsReply_) return;
  wantsReply_ = false;
  replied_ = true;
  const std::size_t payload = encoder.failed() ? 0 : encoder.size();
  memory_->replyHeader = {static_cast<std::uint32_t>(sizeof(ReplyHeader) + payload), status, text};
  barrier::publish(memory_->replies, ++replies_);
  wakeIfAsleep(memory_->clientSeat.sleeps);
}

void WorkerChannel::deferError(std::int32_t status) { barrier::setFirst(memory_->deferredError, status); }

void WorkerChannel::stop() {
  barrier::end(stopped_);
  wake(memory_->workerSeat.sleeps);
}

}  // namespace wire
