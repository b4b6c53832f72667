#include "native/simulator/jit_options.h"

#include <bit>
#include <cstdint>

namespace simulator {
namespace {

/// The pointer itself holds the number, as with the real driver.
std::size_t numberIn(const void* value) {
  return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(value) & 0xffffffff);
}

void* holding(std::size_t number) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
}

}  // namespace

/// Sets the size to the bytes written with the terminator.
void JitOptions::fill(const Log& log, std::string_view text) {
  if (log.text == nullptr || log.size == nullptr || log.room == 0) return;
  const std::size_t count = text.copy(log.text, log.room - 1);
  log.text[count] = 0;
  *log.size = holding(text.empty() ? 0 : count + 1);
}

JitOptions::JitOptions(unsigned count, const CUjit_option* options, void** values) {
  if (count > 0 && (options == nullptr || values == nullptr)) {
    valid_ = false;
    return;
  }
  const auto setSize = [](Log& log, void*& value) {
    log.size = &value, log.room = numberIn(value);
  };
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_ERROR_LOG_BUFFER: errors_.text = static_cast<char*>(values[i]); break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: setSize(errors_, values[i]); break;
      case CU_JIT_INFO_LOG_BUFFER: information_.text = static_cast<char*>(values[i]); break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: setSize(information_, values[i]); break;
      case CU_JIT_WALL_TIME: wallTime_ = &values[i]; break;
      default:
        if (static_cast<unsigned>(options[i]) >= CU_JIT_NUM_OPTIONS) valid_ = false;
    }
  }
}

void JitOptions::report(std::string_view sentence) {
  fill(errors_, sentence);
  fill(information_, {});
  if (wallTime_ == nullptr) return;
  const std::chrono::duration<float, std::milli> took = std::chrono::steady_clock::now() - begin_;
  *wallTime_ = holding(std::bit_cast<std::uint32_t>(took.count()));
}

}  // namespace simulator
