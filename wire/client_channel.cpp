#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "wire/channel.h"
#include "wire/channel_memory.h"
#include "wire/wait.h"

namespace wire {

namespace {

/// As many bytes as Linux maps at a fault of the worker, if their pages exist.
constexpr std::size_t kPopulatedBytes = std::size_t{64} << 10;
static_assert(kRequestBytes % kPopulatedBytes == 0);
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE; older headers lack it

/// The worker takes longer for so many frames than this end takes to wake up.
constexpr std::uint32_t kBlockFrames = 256;

std::uint64_t firstWord(const FrameHeader& header) {
  std::uint64_t word = 0;
  std::memcpy(&word, &header, sizeof(word));
  return word;
}

}  // namespace

std::unique_ptr<ClientChannel> ClientChannel::create() {
  auto channel = std::unique_ptr<ClientChannel>(new ClientChannel);
  channel->process_ = getpid();
  channel->file_ = createChannelFile();
  if (channel->file_ < 0) return nullptr;
  channel->memory_ = mapChannel(channel->file_);
  if (channel->memory_ == nullptr) return nullptr;
  takeSeat(channel->memory_->clientSeat);
  return channel;
}

ClientChannel::~ClientChannel() {
  closeFile();
  if (memory_ == nullptr) return;
  if (process_ == getpid()) {
    barrier::publish<std::uint32_t>(memory_->closed, 1);
    wakeIfAsleep(memory_->clientSeat, memory_->workerSeat);
  }
  unmapChannel(memory_);
}

void ClientChannel::closeFile() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

Encoder ClientChannel::begin(std::size_t payloadBytes) {
  if (payloadBytes > kMaxFrameBytes - sizeof(FrameHeader) || barrier::ended(abandoned_)) return {};
  const std::size_t payload = Encoder::padded(payloadBytes);
  const std::size_t span = frameSpan(sizeof(FrameHeader) + payload);
  if (room() < span && !awaitRoom(span)) return {};
  if (tail_ + span > populated_) [[unlikely]]
    populate(tail_ + span);
  return Encoder(memory_->at(tail_) + sizeof(FrameHeader), payload);
}

std::size_t ClientChannel::room() const {
  return kRequestBytes - kFrameAlignment - (tail_ - head_);
}

/// In the first round through the ring, creates its pages ahead, some at a time. A page fault at
/// each end for each page would take as long as a small copy. Linux before 5.14 refuses.
void ClientChannel::populate(std::uint64_t end) {
  while (populated_ < end) {
    if (populated_ == kRequestBytes) {
      populated_ = ~std::uint64_t{0};
      return;
    }
    madvise(memory_->at(populated_), kPopulatedBytes, kPopulateWrite);
    populated_ += kPopulatedBytes;
  }
}

bool ClientChannel::awaitRoom(std::size_t bytes) {
  // Ask for a wake-up once half of the ring is free, not at every frame.
  barrier::note(memory_->wakeAtHead, tail_ - kRequestBytes / 2);
  bool sane = true;
  const auto settled = [&] {
    const std::uint64_t head = barrier::observe(memory_->head);
    sane = head - head_ <= tail_ - head_;  // `head` must not decrease, or exceed what was published
    if (sane) head_ = head;
    return !sane || room() >= bytes || barrier::ended(abandoned_);
  };
  waitUntil(memory_->clientSeat, memory_->workerSeat, kSleepsForRoom, settled);
  return sane && room() >= bytes;
}

void ClientChannel::publish(const Encoder& encoder, std::uint16_t call, std::uint16_t flags,
                            std::uint64_t ticket) {
  if (encoder.failed()) return;
  const std::size_t length = sizeof(FrameHeader) + encoder.size();
  const FrameHeader header{static_cast<std::uint32_t>(length), call, flags, ticket};
  std::memcpy(encoder.data() - sizeof(ticket), &ticket, sizeof(ticket));
  if (flags & kFrameWantsReply) ++replies_;
  const std::uint64_t begin = tail_;
  tail_ += frameSpan(length);
  barrier::note(memory_->firstWord(tail_), std::uint64_t{0});
  barrier::publish(memory_->firstWord(begin), firstWord(header));
  wakeIfAsleep(memory_->clientSeat, memory_->workerSeat);
  if (++frames_ == kBlockFrames) [[unlikely]] {
    frames_ = 0;
    blockEnds_[0] = std::exchange(blockEnds_[1], tail_);
  }
}

/// Behind many frames of its own, this end sleeps until the worker has read all but the last block
/// or two. To spin would only use processor time, and slow the worker down where both processors
/// are halves of one core.
void ClientChannel::awaitBlocks() {
  barrier::note(memory_->wakeAtHead, blockEnds_[0]);
  const auto settled = [&] {
    return barrier::observe(memory_->head) >= blockEnds_[0] || barrier::ended(abandoned_);
  };
  waitUntil(memory_->clientSeat, memory_->workerSeat, kSleepsForRoom, settled);
}

Decoder ClientChannel::awaitReply(ReplyHeader& header, bool orEnd) {
  // Without many frames, this end must not look at `head`: the worker writes it at every frame.
  if (blockEnds_[0] != 0) [[unlikely]]
    awaitBlocks();
  blockEnds_[0] = blockEnds_[1] = frames_ = 0;
  const auto arrived = [this] { return barrier::observe(memory_->replies) == replies_; };
  const auto waitEnded = [&] { return orEnd && barrier::observe(memory_->ended) == replies_; };
  const auto settled = [&] { return arrived() || waitEnded() || barrier::ended(abandoned_); };
  waitUntil(memory_->clientSeat, memory_->workerSeat, kSleepsForReply, settled,
            replySpinNanoseconds());
  header = {};
  if (!arrived()) return waitEnded() ? Decoder(memory_->replyPayload, 0) : Decoder();
  std::memcpy(&header, &memory_->replyHeader, sizeof(header));
  barrier::keepCopy();
  if (header.length < sizeof(header) || header.length > kReplyBytes) return {};
  return Decoder(memory_->replyPayload, header.length - sizeof(header));
}

std::int32_t ClientChannel::takeDeferredError() { return barrier::take(memory_->deferredError); }

void ClientChannel::abandon() {
  barrier::end(abandoned_);
  wake(memory_->clientSeat.sleeps);
}

}  // namespace wire
