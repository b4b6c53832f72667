// JIT options of a load call or a link: log buffers to fill, the wall time, and others that are
// accepted without effect.
#pragma once

#include <chrono>
#include <string_view>

#include "cuda_abi.h"

namespace simulator {

class JitOptions {
 public:
  JitOptions(unsigned count, const CUjit_option* options, void** values);
  bool valid() const { return valid_; }
  /// Writes the message, which may be empty, and its length to the error log; and the milliseconds
  /// since this object was made.
  void report(std::string_view sentence);

 private:
  /// A log buffer and the number of its bytes, which the driver replaces.
  struct Log {
    char* text = nullptr;
    void** size = nullptr;
    std::size_t room = 0;
  };
  static void fill(const Log& log, std::string_view text);

  Log errors_, information_;
  void** wallTime_ = nullptr;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool valid_ = true;
};

}  // namespace simulator
