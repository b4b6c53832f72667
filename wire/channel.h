// One client thread's connection to its worker thread: a request ring and a reply area in one
// sealed memory file. Single producer, single consumer. No logging, no knowledge of the payload.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "wire/decoder.h"
#include "wire/encoder.h"
#include "wire/frame.h"
#include "wire/wait.h"

namespace wire {

struct ChannelMemory;  // the mapped memory file: channel_memory.h

/// Why a worker's next() returned false.
enum class ChannelEnd : std::uint8_t {
  none,      ///< it has not returned false
  drained,   ///< drain() was called, and what lay in the ring has been read
  closed,    ///< the client destroyed its end, and all frames published before have been read
  nonsense,  ///< the client violated the format
};

/// The client's end; owned by one thread. The ring is mapped twice in a row, so a frame is always
/// contiguous.
class ClientChannel {
 public:
  /// Creates and maps the memory file. Null with errno set on failure.
  static std::unique_ptr<ClientChannel> create();
  /// Tells the worker that no more frames will come. A forked child only unmaps, because the
  /// channel belongs to the parent.
  ~ClientChannel();
  ClientChannel(const ClientChannel&) = delete;
  ClientChannel& operator=(const ClientChannel&) = delete;

  /// The memory file to send to the worker. Call closeFile() after that.
  int file() const { return file_; }
  void closeFile();

  /// Reserves room for a frame of at most `payloadBytes` beyond the header, waiting while the ring
  /// is full. The encoder's failed() is set when the peer is gone or the bound exceeds
  /// kMaxFrameBytes.
  Encoder begin(std::size_t payloadBytes);

  /// Completes the frame that `encoder`, the last one from begin(), wrote, and publishes it. Wakes
  /// the worker if it sleeps. A failed encoder publishes nothing.
  void publish(const Encoder& encoder, std::uint16_t call, std::uint16_t flags,
               std::uint64_t ticket);

  /// Waits for the reply to the last published frame. A failed decoder when the peer died. The
  /// bytes stay valid until the next begin(). With `orEnd`, an empty reply without error also
  /// when the GPU says that the wait has ended (WorkerChannel::endOfWait()).
  Decoder awaitReply(ReplyHeader& header, bool orEnd = false);

  /// The first error of a call that did not wait since either end took one; 0 when there was none.
  std::int32_t takeDeferredError();

  /// Call when the worker is gone, on any thread. Every present and future wait of this channel
  /// ends at once.
  void abandon();

 private:
  friend struct SharedMapping;  // wire/test/shared_mapping.h
  ClientChannel() = default;
  std::size_t room() const;
  bool awaitRoom(std::size_t bytes);
  void awaitBlocks();
  void populate(std::uint64_t end);

  int file_ = -1;                    ///< owned
  pid_t process_ = 0;                ///< the process that created it
  ChannelMemory* memory_ = nullptr;  ///< owned
  std::uint64_t tail_ = 0;           ///< bytes published
  std::uint64_t head_ = 0;           ///< last value seen of what the worker consumed
  std::uint64_t populated_ = 0;      ///< position up to which the ring's pages exist
  /// Since the last reply was awaited: the ends of the last two full blocks of frames, the older
  /// one first (0: there is none), and the frames published after them.
  std::uint64_t blockEnds_[2] = {};
  std::uint32_t frames_ = 0;
  std::uint64_t replies_ = 0;  ///< replies asked for so far
  std::atomic<bool> abandoned_{false};
};

/// The worker's end; owned by one thread. Data is copied out of the shared memory before it is
/// checked.
class WorkerChannel {
 public:
  /// Maps a client's memory file; the caller still owns `file`. Null if its size or seals differ
  /// from those of create().
  static std::unique_ptr<WorkerChannel> attach(int file);
  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  /// Waits for the next frame and copies it into this object, where it stays until the next call.
  /// Spins for `spinNanoseconds` first. Always false after an end().
  bool next(FrameHeader& header, Decoder& payload,
            std::uint64_t spinNanoseconds = kSpinNanoseconds);
  ChannelEnd end() const { return end_; }

  /// The header of the frame that next() will return, if the client has published it. A hint: the
  /// client can still change it.
  std::optional<FrameHeader> glance() const;

  /// Whether the client has published frames that next() has not returned yet. Any thread.
  bool hasMore() const;

  /// Encoder for the reply's payload; reply() sends it. Frames without kFrameWantsReply get no
  /// reply. A payload that does not fit is omitted, and the client's decoder fails.
  Encoder replyEncoder();
  void reply(const Encoder& encoder, std::int32_t status, std::uint64_t text);

  /// The pages in which the replies lie. Requests do not.
  std::span<std::byte> replyMemory();

  /// Where the GPU may write a number to end the client's wait. The current frame must be a wait
  /// that can only end well. The worker replies all the same, but the client may have gone on. The
  /// client can write the number too: then it ends its own wait early.
  struct EndOfWait {
    std::atomic<std::uint64_t>* word;
    std::uint64_t number;
  };
  EndOfWait endOfWait();

  /// Stores the error of a call that does not wait. The first one stays until the client takes it.
  void deferError(std::int32_t status);

  /// The error that the client has not taken, which it now gets with a reply; 0 when there is none.
  std::int32_t takeDeferredError();

  /// The client is gone. next() returns the frames that lie in the ring, at most a ring's bytes,
  /// and then false. Call it on another thread.
  void drain();

 private:
  friend struct SharedMapping;  // wire/test/shared_mapping.h
  explicit WorkerChannel(ChannelMemory* memory);
  bool drained();
  bool awaitFrame(std::uint64_t& firstWord, std::uint64_t spinNanoseconds);
  void restIfQuick();
  void consume(std::uint64_t bytes);
  bool ended(ChannelEnd end);

  ChannelMemory* memory_;   ///< owned
  std::uint64_t head_ = 0;  ///< bytes consumed, which is the position of the next frame
  std::uint64_t replies_ = 0;
  bool wantsReply_ = false;  ///< the client waits for the reply to the current frame
  bool replied_ = true;  ///< the client will send the next frame soon, and may wait for its reply
  std::uint64_t caughtUp_ = 0;  ///< when the ring was last empty after frames that want no reply
  std::uint32_t frames_ = 0;    ///< frames read since then
  std::uint32_t ahead_ = 0;     ///< frames read since the last one that was waited for
  ChannelEnd end_ = ChannelEnd::none;
  std::uint64_t lastHead_ = 0;  ///< where reading ends after drain(); 0: not seen yet
  std::atomic<bool> draining_{false};
  std::unique_ptr<std::byte[]> frame_;  ///< kMaxFrameBytes; the copy that is decoded
};

}  // namespace wire
