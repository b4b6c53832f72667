#include <algorithm>
#include <cstring>

#include "wire/channel.h"
#include "wire/channel_memory.h"
#include "wire/wait.h"

namespace wire {

namespace {

// Having caught up with a client that enqueues as fast as this end consumes, the worker lets it
// write some more in peace: each look for the next frame takes its line away from the client, who
// then pays to write it. Frames that take longer to execute need no rest.
constexpr int kRestPauses = 16;
constexpr std::uint64_t kQuickFrameNanoseconds = 200;

// A frame's lines are with the client. Asked for together they arrive in the time of one: most
// frames, launches too, are this short.
constexpr std::size_t kPrefetchedBytes = 4 * kFrameAlignment;
// Having found so many frames without a wait, the worker asks for the next one before it executes
// this one: the client has written it long ago. Otherwise it may be about to write it.
constexpr std::uint32_t kFramesAhead = 16;

void prefetch(const std::byte* frame, std::size_t from, std::size_t to) {
  for (std::size_t at = from; at < to; at += kFrameAlignment) __builtin_prefetch(frame + at);
}

// A length longer than what was published only makes the client's own garbage readable: the ring
// has no other neighbour than itself.
bool isPlausible(const FrameHeader& header) {
  return header.length % 8 == 0 && header.length >= sizeof(header) &&
         header.length <= kMaxFrameBytes;
}

}  // namespace

std::unique_ptr<WorkerChannel> WorkerChannel::attach(int file) {
  if (!isChannelFile(file)) return nullptr;
  ChannelMemory* memory = mapChannel(file);
  return memory ? std::unique_ptr<WorkerChannel>(new WorkerChannel(memory)) : nullptr;
}

WorkerChannel::WorkerChannel(ChannelMemory* memory)
    : memory_(memory), frame_(std::make_unique_for_overwrite<std::byte[]>(kMaxFrameBytes)) {
  takeSeat(memory_->workerSeat);
}

WorkerChannel::~WorkerChannel() { unmapChannel(memory_); }

bool WorkerChannel::next(FrameHeader& header, Decoder& payload, std::uint64_t spinNanoseconds) {
  if (end_ != ChannelEnd::none) return false;
  if (barrier::ended(draining_) && drained()) [[unlikely]]
    return ended(ChannelEnd::drained);
  const std::byte* at = memory_->at(head_);
  std::uint64_t firstWord = barrier::observe(memory_->firstWord(head_));
  if (firstWord != 0)
    ++ahead_;
  else if (ahead_ = 0; !awaitFrame(firstWord, spinNanoseconds))
    return false;

  std::memcpy(&header, &firstWord, sizeof(firstWord));
  const auto prefetched = std::min<std::size_t>(header.length, kPrefetchedBytes);
  prefetch(at, kFrameAlignment, prefetched);
  std::memcpy(&header.ticket, at + offsetof(FrameHeader, ticket), sizeof(header.ticket));
  barrier::keepCopy();
  if (!isPlausible(header)) return ended(ChannelEnd::nonsense);
  const std::size_t bytes = header.length - sizeof(header);
  std::memcpy(frame_.get(), at + sizeof(header), bytes);
  barrier::keepCopy();

  consume(frameSpan(header.length));
  wantsReply_ = (header.flags & kFrameWantsReply) != 0;
  if (ahead_ >= kFramesAhead && !wantsReply_) prefetch(memory_->at(head_), 0, prefetched);
  replied_ = false;
  ++frames_;
  payload = Decoder(frame_.get(), bytes);
  return true;
}

std::optional<FrameHeader> WorkerChannel::glance() const {
  const std::uint64_t firstWord = barrier::observe(memory_->firstWord(head_));
  if (firstWord == 0) return std::nullopt;
  FrameHeader header;
  std::memcpy(&header, &firstWord, sizeof(firstWord));
  std::memcpy(&header.ticket, memory_->at(head_) + offsetof(FrameHeader, ticket),
              sizeof(header.ticket));
  return header;
}

/// The client can write `head`, too: then this may be wrong, but reads nothing but the ring.
bool WorkerChannel::hasMore() const {
  const std::uint64_t head = barrier::observe(memory_->head) & ~std::uint64_t{kFrameAlignment - 1};
  return barrier::observe(memory_->firstWord(head)) != 0;
}

/// A forked child of the client may still write: the worker reads no more than a ring holds.
bool WorkerChannel::drained() {
  if (lastHead_ == 0) lastHead_ = head_ + kRequestBytes;
  return head_ >= lastHead_;
}

bool WorkerChannel::awaitFrame(std::uint64_t& firstWord, std::uint64_t spinNanoseconds) {
  if (!replied_) restIfQuick();
  // The ends are looked at first: what was published before them is then seen.
  ChannelEnd end = ChannelEnd::none;
  const auto settled = [&] {
    if (barrier::observe(memory_->closed) != 0) end = ChannelEnd::closed;
    if (barrier::ended(draining_)) end = ChannelEnd::drained;
    firstWord = barrier::observe(memory_->firstWord(head_));
    return firstWord != 0 || end != ChannelEnd::none;
  };
  waitUntil(memory_->workerSeat, memory_->clientSeat, kSleepsForFrame, settled, spinNanoseconds);
  return firstWord != 0 || ended(end);
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
  if (sleepReason(memory_->clientSeat) == kSleepsForRoom &&
      head_ >= barrier::glance(memory_->wakeAtHead))
    wake(memory_->clientSeat.sleeps);
}

bool WorkerChannel::ended(ChannelEnd end) {
  end_ = end;
  return false;
}

Encoder WorkerChannel::replyEncoder() {
  return Encoder(memory_->replyPayload, sizeof(memory_->replyPayload));
}

void WorkerChannel::reply(const Encoder& encoder, std::int32_t status, std::uint64_t text) {
  if (!wantsReply_) return;
  wantsReply_ = false;
  replied_ = true;
  const std::size_t payload = encoder.failed() ? 0 : encoder.size();
  memory_->replyHeader = {static_cast<std::uint32_t>(sizeof(ReplyHeader) + payload), status, text};
  barrier::publish(memory_->replies, ++replies_);
  wakeIfAsleep(memory_->workerSeat, memory_->clientSeat);
}

std::span<std::byte> WorkerChannel::replyMemory() {
  return {reinterpret_cast<std::byte*>(memory_), offsetof(ChannelMemory, ring)};
}

WorkerChannel::EndOfWait WorkerChannel::endOfWait() { return {&memory_->ended, replies_ + 1}; }

void WorkerChannel::deferError(std::int32_t status) {
  barrier::setFirst(memory_->deferredError, status);
}

std::int32_t WorkerChannel::takeDeferredError() { return barrier::take(memory_->deferredError); }

void WorkerChannel::drain() {
  barrier::end(draining_);
  wake(memory_->workerSeat.sleeps);
}

}  // namespace wire
