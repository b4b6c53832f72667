// A double of interposer/session/call.h: the worker's side runs inside wait() and enqueue().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "call_numbers.h"
#include "cuda_abi.h"
#include "wire/decoder.h"
#include "wire/encoder.h"
#include "wire/frame.h"

namespace interposer {

enum Order : bool { kUnordered, kOrdered };

class Call {
 public:
  bool begin(CallNumber number, std::size_t payloadBytes, Order order);
  wire::Encoder& encoder() { return encoder_; }
  CUresult status() const { return CUDA_ERROR_INVALID_VALUE; }
  CUresult wait(wire::Decoder& reply);
  CUresult enqueue(bool plausible = true);

 private:
  CallNumber number_{};
  alignas(8) std::array<std::byte, wire::kMaxFrameBytes> request_;
  alignas(8) std::array<std::byte, wire::kReplyBytes> reply_;
  wire::Encoder encoder_;
};

template <class T>
T handle(std::uint64_t number) {
  return (T)number;
}
template <class T>
std::uint64_t number(T handle) {
  return (std::uint64_t)handle;
}

}  // namespace interposer
