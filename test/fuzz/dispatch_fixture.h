// A session for dispatch_fuzz, and frames that calls accept.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "call_numbers.h"
#include "native/worker/session/thread.h"

namespace fuzz {

/// Payload of a frame. The wire's unit is the word.
using Words = std::vector<std::uint64_t>;

struct Outcome {
  bool accepted = false;  ///< the frame parsed to its last byte
  CUresult status = CUDA_SUCCESS;
  std::size_t consumed = 0;  ///< words that the call read; all after an error
};

/// A session whose driver accepts everything and does nothing. Ids 1 to 3 name files that the
/// client has sent.
class Fixture {
 public:
  Fixture();
  Outcome dispatch(std::uint16_t call, const Words& words);
  /// The frame that dispatch() got last, for the report of a crash.
  static std::pair<std::uint16_t, const Words*>& current();
  /// Replaces handles that frames have ended.
  void restore();
  /// Values that calls look up: handles, names of files, addresses and sizes.
  const Words& known() const { return known_; }
  std::uint64_t handle(wire::HandleKind kind) const {
    return handles_[static_cast<std::size_t>(kind)];
  }
  /// The name of an exported event, as another process would pass it.
  const worker::SharedName& exported() const { return exported_; }

 private:
  void sendFiles();
  std::uint64_t makeHandle(wire::HandleKind kind);
  void exportEvent();

  worker::Report report_{-1};
  worker::Quota quota_;
  worker::FiguresFile figures_;
  worker::Output output_;
  std::unique_ptr<worker::Session> session_;
  std::unique_ptr<worker::Thread> thread_;
  std::vector<std::byte> reply_ = std::vector<std::byte>(wire::kReplyBytes);
  std::vector<std::uint64_t> handles_;  ///< by kind
  Words known_;
  worker::SharedName exported_{};
};

using Random = std::mt19937;

/// Adds to `words`, or cuts them, until the call accepts the frame. Nothing is executed. False if
/// no try succeeded: an array's count is wrong.
bool complete(Fixture& fixture, std::uint16_t call, Words& words, Random& random);

/// A frame that succeeds, of a call that takes files or names; empty for other calls.
Words example(const Fixture& fixture, std::uint16_t call);

/// Replaces some words by known values, small numbers and halves of both.
void insertKnown(const Fixture& fixture, Words& words, Random& random);

}  // namespace fuzz
