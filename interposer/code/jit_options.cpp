#include "interposer/code/jit_options.h"

#include <algorithm>
#include <cstring>

namespace interposer {

namespace {

bool isBuffer(CUjit_option option) {
  return option == CU_JIT_INFO_LOG_BUFFER || option == CU_JIT_ERROR_LOG_BUFFER;
}

}  // namespace

void** JitOptions::value(CUjit_option option) const {
  const auto* found = std::find(options_, options_ + count_, option);
  return found != options_ + count_ ? values_ + (found - options_) : nullptr;
}

void JitOptions::encode(wire::Encoder& encoder) const {
  encoder.put<std::uint64_t>(count_);
  for (unsigned i = 0; i < count_; ++i) {
    encoder.put<std::uint32_t>(options_[i]);
    encoder.put<std::uint64_t>(isBuffer(options_[i]) ? values_[i] != nullptr
                                                     : reinterpret_cast<std::uint64_t>(values_[i]));
  }
}

void JitOptions::fill(CUjit_option buffer, CUjit_option size, std::span<const std::byte> text) {
  void** const to = value(buffer);
  void** const room = value(size);
  if (to == nullptr || room == nullptr || *to == nullptr) return;
  const auto bytes = std::min<std::size_t>(text.size(), reinterpret_cast<std::uint64_t>(*room));
  std::memcpy(*to, text.data(), bytes);
  if (bytes > 0) static_cast<char*>(*to)[bytes - 1] = '\0';
  *room = reinterpret_cast<void*>(static_cast<std::uint64_t>(bytes));
}

void JitOptions::decode(wire::Decoder& reply) {
  const auto information = reply.getBytes(wire::kReplyBytes);
  const auto errors = reply.getBytes(wire::kReplyBytes);
  const auto wallTime = reply.get<std::uint64_t>();
  const auto threads = reply.get<std::uint64_t>();
  if (!reply.ok() || count_ == 0) return;
  fill(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, information);
  fill(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, errors);
  if (void** const to = value(CU_JIT_WALL_TIME)) *to = reinterpret_cast<void*>(wallTime);
  if (void** const to = value(CU_JIT_THREADS_PER_BLOCK)) *to = reinterpret_cast<void*>(threads);
}

}  // namespace interposer
