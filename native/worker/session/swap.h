// Moves the GPU memory of a suspended session to a file in host memory, and back to the same
// addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cuda_abi.h"
#include "native/worker/memory/movable_memory.h"
#include "native/worker/memory/movable_piece.h"
#include "native/worker/session/owned_file.h"

namespace worker {

/// For one thread at a time. Between moveOut() and moveIn(), and during both, no call of the client
/// may be executed and no work of the session may run. Functions that return a sentence return an
/// empty one if all is done; else nothing has changed.
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
  bool isOut() const { return out_; }

  /// `arena`: a sealed memory file of at least bytes(), all of it populated; -1: the one that there
  /// is. It is registered with the driver once, and kept.
  std::string moveOut(OwnedFile arena);
  /// Takes room for all of the memory before it brings back any of it. If a fault has ended the
  /// contexts meanwhile, the memory is there without its content, which no call can read.
  std::string moveIn();
  /// Gives up the arena.
  std::string drop();

  /// The registration of the arena has ended with the context.
  void contextEnded(CUcontext context);

 private:
  /// A piece, and where it lies in the arena.
  struct Part {
    MovablePiece piece;
    std::uint64_t offset = 0;
  };

  std::string prepare(OwnedFile arena, std::uint64_t bytes, CUcontext context);
  bool take(OwnedFile arena);
  CUresult registerArena(CUcontext context);
  CUresult copy(const Part& part, bool out) const;
  CUresult copyAll(bool out) const;
  CUresult makeRoom();
  CUresult mapAll();
  void unmapAll();
  std::string failed(const char* what, CUresult status) const;

  MovableMemory& memory_;
  const std::function<CUcontext()> context_;
  std::string forbidden_;
  std::byte* arena_ = nullptr;
  std::uint64_t arenaBytes_ = 0;
  CUcontext registered_ = nullptr;  ///< the context with which the arena is registered
  CUstream stream_ = nullptr;       ///< of that context, for the copies: the gate knows it not
  std::vector<Part> parts_;
  bool out_ = false;
};

}  // namespace worker
