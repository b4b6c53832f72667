// Moves GPU memory of a suspended session to files in host memory, and back to the same addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda_abi.h"
#include "native/worker/memory/movable_memory.h"
#include "native/worker/memory/movable_piece.h"
#include "native/worker/session/owned_file.h"

namespace worker {

/// For one thread at a time. While some of the memory is out, and during each move, no call of the
/// client may be executed and no work of the session may run. Functions that return a sentence
/// return an empty one if all is done; else nothing has changed.
class Swap {
 public:
  /// `context`: gives a context of the session to copy in; null if it has none, or if a fault has
  /// ended them.
  Swap(MovableMemory& memory, std::function<CUcontext()> context)
      : memory_(memory), context_(std::move(context)) {}
  ~Swap();
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;

  /// The session's memory cannot leave, for a reason that does not change.
  void forbid(std::string why) { forbidden_ = std::move(why); }
  /// Why memory that the session has on the GPU cannot leave. Empty if it can, or if there is none.
  std::string whyStays() const;

  /// Bytes that can leave now.
  std::uint64_t bytes() const;
  /// Bytes that are out.
  std::uint64_t outBytes() const;

  /// Bytes that the arena lacks for moveOut().
  std::uint64_t lacking(std::uint64_t bytes) const;
  /// Moves pieces of at least `bytes` out, or all that can leave. `file`: another part of the
  /// arena, a sealed memory file, all of it populated; -1: what there is suffices. Each part is
  /// registered with the driver once, and kept.
  std::string moveOut(std::uint64_t bytes, OwnedFile file);
  /// Brings pieces of at most `bytes` back. Takes room for all of them before it brings back any.
  /// If a fault has ended the contexts meanwhile, the memory is there without its content, which no
  /// call can read.
  std::string moveIn(std::uint64_t bytes);
  /// Gives up the arena.
  std::string drop();

  /// The registrations of the arena have ended with the context.
  void contextEnded(CUcontext context);

 private:
  /// A piece, and where it lies in the arena.
  struct Part {
    MovablePiece piece;
    std::uint64_t offset = 0;
  };
  using Parts = std::span<const Part>;
  /// A mapped file of the arena.
  struct Segment {
    std::byte* at = nullptr;
    std::uint64_t bytes = 0;
    bool registered = false;
  };

  std::vector<MovablePiece> present() const;
  std::uint64_t arenaBytes() const;
  std::string prepare(OwnedFile file, std::uint64_t bytes);
  bool map(const OwnedFile& file);
  CUresult registerArena();
  CUresult copy(const Part& part, bool out) const;
  CUresult copyAt(CUdeviceptr address, std::uint64_t offset, std::uint64_t bytes, bool out) const;
  CUresult copyAll(Parts parts, bool out) const;
  CUresult makeRoom(Parts parts);
  CUresult mapAll(Parts parts);
  void unmapAll(Parts parts);
  std::string failed(const char* what, CUresult status) const;

  MovableMemory& memory_;
  const std::function<CUcontext()> context_;
  std::string forbidden_;
  std::vector<Segment> arena_;
  CUcontext registered_ = nullptr;  ///< the context with which the arena is registered
  CUstream stream_ = nullptr;       ///< of that context, for the copies: the gate knows it not
  std::vector<Part> out_;           ///< what is out, in the order of the arena
};

}  // namespace worker
