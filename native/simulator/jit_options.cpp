#include "native/simulator/jit_options.h"

#include <cstdint>

namespace simulator {
namespace {

/// Copies a text into a log of *size bytes, and sets *size to the bytes written with the
/// terminator. As with the real driver, the pointer itself holds the number.
void fill(char* log, void** size, std::string_view text) {
  if (log == nullptr || size == nullptr) return;
  const auto room = static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(*size) & 0xffffffff);
  if (room == 0) return;
  const std::size_t count = text.copy(log, room - 1);
  log[count] = 0;
  *size = reinterpret_cast<void*>(static_cast<std::uintptr_t>(text.empty() ? 0 : count + 1));
}

}  // namespace

JitOptions::JitOptions(unsigned count, const CUjit_option* options, void** values) {
  if (count > 0 && (options == nullptr || values == nullptr)) {
    valid_ = false;
    return;
  }
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_ERROR_LOG_BUFFER: errorLog_ = static_cast<char*>(values[i]); break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: errorSize_ = &values[i]; break;
      case CU_JIT_INFO_LOG_BUFFER: infoLog_ = static_cast<char*>(values[i]); break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: infoSize_ = &values[i]; break;
      default:
        if (static_cast<unsigned>(options[i]) >= CU_JIT_NUM_OPTIONS) valid_ = false;
    }
  }
}

void JitOptions::report(std::string_view sentence) {
  fill(errorLog_, errorSize_, sentence);
  fill(infoLog_, infoSize_, {});
}

}  // namespace simulator
