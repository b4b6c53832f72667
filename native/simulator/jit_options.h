// JIT options of a load call: log buffers to fill, and others that are accepted without effect.
#pragma once

#include <string_view>

#include "cuda_abi.h"

namespace simulator {

class JitOptions {
 public:
  JitOptions(unsigned count, const CUjit_option* options, void** values);
  bool valid() const { return valid_; }
  /// Writes the message, which may be empty, and its length to the error log.
  void report(std::string_view sentence);

 private:
  char* errorLog_ = nullptr;
  void** errorSize_ = nullptr;
  char* infoLog_ = nullptr;
  void** infoSize_ = nullptr;
  bool valid_ = true;
};

}  // namespace simulator
