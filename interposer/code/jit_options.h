// The options of a load: plain values travel as they are, log buffers are filled from the worker's
// answer.
#pragma once

#include "cuda_abi.h"
#include "interposer/session/call.h"

namespace interposer {

class JitOptions {
 public:
  JitOptions(unsigned count, CUjit_option* options, void** values)
      : count_(count), options_(options), values_(values) {}

  static constexpr std::size_t kMaxOptions = 64;
  bool valid() const {
    return count_ <= kMaxOptions && (count_ == 0 || (options_ != nullptr && values_ != nullptr));
  }
  std::size_t payloadBytes() const { return 16 + count_ * 16; }
  /// Encodes the program's options, without its addresses.
  void encode(wire::Encoder& encoder) const;
  /// Fills the program's log buffers and other values that the driver returned.
  void decode(wire::Decoder& reply);

 private:
  void fill(CUjit_option buffer, CUjit_option size, std::span<const std::byte> text);
  void** value(CUjit_option option) const;

  unsigned count_;
  CUjit_option* options_;
  void** values_;
};

}  // namespace interposer
