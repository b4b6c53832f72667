#include "native/worker/calls/image.h"

#include <algorithm>
#include <cstring>

#include "native/worker/thread.h"
#include "wire/image.h"

namespace worker {

namespace {

constexpr std::size_t kMaxImages = 4096;
constexpr std::size_t kMaxOptions = 64;

/// Options whose value is a number; all others hold an address of the client.
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

bool isLog(CUjit_option option) { return option >= CU_JIT_INFO_LOG_BUFFER && option <= CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES; }

}  // namespace

bool Image::decode(Thread& thread, wire::Decoder& in) {
  const auto id = in.get<std::uint64_t>();
  const auto kind = in.get<wire::ImageKind>();
  const auto count = in.get<std::uint64_t>();
  if (!in.ok() || count == 0 || count > kMaxImages) return false;
  std::vector<std::uint64_t> lengths(count);
  for (auto& length : lengths) length = in.get<std::uint64_t>();
  if (!in.ok()) return false;
  memory_ = thread.session.shared.takeSealed(id);
  const std::byte* at = memory_.content().data();
  std::uint64_t left = memory_.content().size();
  for (const std::uint64_t length : lengths) {
    const std::uint64_t padded = (length + 7) & ~std::uint64_t{7};
    if (length == 0 || length > left || padded > left) return true;
    images_.emplace_back(at, length);
    objects_.push_back(at);
    at += padded;
    left -= padded;
  }
  if (kind == wire::ImageKind::text && memory_.content()[lengths.front() - 1] != std::byte{0}) return true;
  pointer_ = objects_.front();
  if (kind != wire::ImageKind::wrapper) return true;
  const bool linked = objects_.size() > 1;
  wrapper_ = {wire::kWrapperMagic, linked ? 2u : 1u, objects_.front(), linked ? objects_.data() + 1 : nullptr};
  objects_.push_back(nullptr);
  if (linked) wrapper_.objects = objects_.data() + 1;
  pointer_ = &wrapper_;
  return true;
}

ImageFacts Image::facts() const {
  if (images_.empty()) return {};
  ImageFacts facts = inspectImage(images_.front());
  std::uint64_t linked = 0;
  for (std::size_t i = 1; i < images_.size(); ++i) {
    const ImageFacts part = inspectImage(images_[i]);
    linked += part.memory;
    facts.mayPrint = facts.mayPrint || part.mayPrint;
    facts.mayAllocate = facts.mayAllocate || part.mayAllocate;
  }
  facts.memory = std::max(facts.memory, linked);
  return facts;
}

bool JitOptions::decode(wire::Decoder& in) {
  const auto count = in.get<std::uint64_t>();
  if (!in.ok() || count > kMaxOptions) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto option = in.get<CUjit_option>();
    add(option, in.get<std::uint64_t>());
  }
  // The errors are always wanted: for the proxy's log if for nobody else.
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

void JitOptions::addLog(CUjit_option buffer, CUjit_option size, std::vector<char>& text) {
  options_.push_back(buffer);
  values_.push_back(text.data());
  options_.push_back(size);
  values_.push_back(reinterpret_cast<void*>(text.size()));
}

void JitOptions::encodeLogs(wire::Encoder& out) const {
  const auto put = [&](const std::vector<char>& text, std::uint64_t room) {
    const std::size_t length = strnlen(text.data(), text.size());
    out.putBytes(text.data(), room == 0 || length == 0 ? 0 : std::min<std::size_t>(length + 1, room));
  };
  put(information_, informationRoom_);
  put(errors_, errorRoom_);
}

}  // namespace worker
