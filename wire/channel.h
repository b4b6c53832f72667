// One client thread's connection to its worker thread: a request ring and a reply area in one sealed memory file.
// Single producer, single consumer. No logging, no knowledge of the payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "wire/decoder.h"
#include "wire/encoder.h"
#include "wire/frame.h"

namespace wire {

struct ChannelMemory;  // the mapped memory file; its fields are in channel.cpp

/// The client's end; owned by one thread. The ring is mapped twice in a row, so a frame is always contiguous.
class ClientChannel {
 public:
  /// Creates and maps the memory file; null with errno set when the system refuses.
  static std::unique_ptr<ClientChannel> create();
  ~ClientChannel();

  /// The memory file, to be sent to the worker; closed by closeFile() once it is.
  int file() const { return file_; }
  void closeFile();

  /// Reserves room for a frame of at most `payloadBytes` beyond the header, waiting while the ring is full.
  /// The encoder's failed() is set when the peer is gone or the bound exceeds kMaxFrameBytes.
  Encoder begin(std::size_t payloadBytes);

  /// Completes the frame that `encoder` wrote, and publishes it. Wakes the worker if it sleeps.
  void publish(const Encoder& encoder, std::uint16_t call, std::uint16_t flags, std::uint64_t ticket);

  /// Waits for the reply to the last published frame. A failed decoder when the peer died. The bytes stay valid until the next begin().
  Decoder awaitReply(ReplyHeader& header);

  /// The first error of a call that did not wait since it was last taken; 0 when there was none.
  std::int32_t takeDeferredError();

  /// Called from any thread when the worker is gone: every present and future wait of this channel ends at once.
  void abandon();

 private:
  ClientChannel() = default;
  int file_ = -1;
  ChannelMemory* memory_ = nullptr;
  std::uint64_t tail_ = 0;       ///< bytes published
  std::uint64_t head_ = 0;       ///< last value seen of what the worker consumed
  std::uint32_t replies_ = 0;    ///< replies awaited so far
};

/// The worker's end; owned by one thread. Everything read is copied out of the shared memory first, then checked.
class WorkerChannel {
 public:
  /// Maps the memory file that a client sent. Null when its size or seals are not those of create().
  static std::unique_ptr<WorkerChannel> attach(int file);
  ~WorkerChannel();

  /// Waits for the next frame and copies it into this object. False when stop() was called or the client wrote nonsense.
  bool next(FrameHeader& header, Decoder& payload);

  /// The reply's payload is encoded here, then sent by reply(). The reply of a frame without kFrameWantsReply is never sent.
  Encoder replyEncoder();
  void reply(const Encoder& encoder, std::int32_t status, std::uint64_t text);

  /// Remembers the error of a call that does not wait; the first one stays until the client takes it.
  void deferError(std::int32_t status);

  /// Ends next() from another thread.
  void stop();

 private:
  WorkerChannel() = default;
  ChannelMemory* memory_ = nullptr;
  std::uint64_t head_ = 0;
  std::uint32_t replies_ = 0;
  std::unique_ptr<std::byte[]> frame_;  ///< kMaxFrameBytes; the copy that is decoded
};

}  // namespace wire
