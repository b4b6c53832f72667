// The options of the just-in-time compiler that a load call was given: log buffers to fill, and what else is accepted without effect.
#pragma once

#include <string_view>

#include "cuda_abi.h"

namespace simulator {

class JitOptions {
 public:
  JitOptions(unsigned count, const CUjit_option* options, void** values);
  bool valid() const { return valid_; }
  /// Writes the sentence (it may be empty) into the error log and says how long it is.
  void report(std::string_view sentence);

 private:
  char* errorLog_ = nullptr;
  void** errorSize_ = nullptr;
  char* infoLog_ = nullptr;
  void** infoSize_ = nullptr;
  bool valid_ = true;
};

}  // namespace simulator
