#include "native/worker/calls/image.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "native/worker/session/thread.h"
#include "wire/image.h"

namespace worker {

namespace {

constexpr std::size_t kMaxImages = 4096;
constexpr std::size_t kMaxOptions = 64;

/// Whether the option's value is a number. The values of all other options are client addresses.
bool isNumber(CUjit_option option) {
  switch (option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_WALL_TIME:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_TARGET:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_FAST_COMPILE:
    case CU_JIT_LTO:
    case CU_JIT_FTZ:
    case CU_JIT_PREC_DIV:
    case CU_JIT_PREC_SQRT:
    case CU_JIT_FMA:
    case CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK: return true;
    default: return false;
  }
}

bool isLog(CUjit_option option) {
  return option >= CU_JIT_INFO_LOG_BUFFER && option <= CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
}

bool isZero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

bool Image::decode(Thread& thread, wire::Decoder& in) {
  const auto id = in.get<std::uint64_t>();
  const auto count = in.get<std::uint64_t>();
  if (!in.ok() || count == 0 || count > kMaxImages) return false;
  std::vector<std::uint64_t> lengths(count);
  for (auto& length : lengths) length = in.get<std::uint64_t>();
  if (!in.ok()) return false;
  if (id == 0) return decodeInline(in, lengths);
  const SealedBytes memory = thread.session.shared.takeSealed(id);
  std::span<const std::byte> rest = memory.content();
  std::vector<std::span<const std::byte>> parts;
  for (const std::uint64_t length : lengths) {
    if (length == 0 || length > rest.size()) return true;
    parts.push_back(rest.first(length));
    rest = rest.subspan(std::min<std::uint64_t>(rest.size(), (length + 7) & ~std::uint64_t{7}));
  }
  vetted_ = std::make_unique<VettedImage>(parts);
  return true;
}

bool Image::decodeInline(wire::Decoder& in, std::span<const std::uint64_t> lengths) {
  std::vector<std::span<const std::byte>> parts;
  for (const std::uint64_t length : lengths) {
    if (length > wire::kInlineImageBytes) return false;
    const auto space = in.getSpace(length + wire::kImageZeros, length + wire::kImageZeros);
    if (!in.ok() || !isZero(space.subspan(length))) return false;
    parts.push_back(space.first(length));
  }
  vetted_ = std::make_unique<VettedImage>(parts, VettedImage::Behind::zeros);
  return true;
}

bool JitOptions::decode(wire::Decoder& in, Logs logs) {
  const auto count = in.get<std::uint64_t>();
  if (!in.ok() || count > kMaxOptions) return false;
  constexpr std::size_t kOfLogs = 4;
  options_.reserve(count + kOfLogs);
  values_.reserve(count + kOfLogs);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto option = in.get<CUjit_option>();
    add(option, in.get<std::uint64_t>());
  }
  if (logs == Logs::none) return in.ok();
  // Both logs are always requested: the worker's log shows the errors even if the program did not
  // ask.
  addLog(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, information_);
  addLog(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, errors_);
  return in.ok();
}

void JitOptions::add(CUjit_option option, std::uint64_t value) {
  if (option == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) informationRoom_ = value;
  if (option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) errorRoom_ = value;
  if (isLog(option)) return;
  supported_ = supported_ && isNumber(option);
  options_.push_back(option);
  values_.push_back(reinterpret_cast<void*>(value));
}

void JitOptions::addLog(CUjit_option buffer, CUjit_option size, char* text) {
  options_.push_back(buffer);
  values_.push_back(text);
  options_.push_back(size);
  values_.push_back(reinterpret_cast<void*>(kLogBytes));
}

void JitOptions::setErrors(const std::string& sentence) {
  std::snprintf(errors_, kLogBytes, "%s", sentence.c_str());
}

void JitOptions::encodeLogs(wire::Encoder& out) const {
  const auto put = [&](const char* text, std::uint64_t room) {
    const std::size_t length = strnlen(text, kLogBytes);
    out.putBytes(text, room == 0 || length == 0 ? 0 : std::min<std::size_t>(length + 1, room));
  };
  put(information_, informationRoom_);
  put(errors_, errorRoom_);
  out.put(numberOf(CU_JIT_WALL_TIME));
  out.put(numberOf(CU_JIT_THREADS_PER_BLOCK));
}

std::uint64_t JitOptions::numberOf(CUjit_option option) const {
  const auto found = std::find(options_.begin(), options_.end(), option);
  return found == options_.end()
             ? 0
             : reinterpret_cast<std::uint64_t>(values_[found - options_.begin()]);
}

}  // namespace worker
