// Why a text did not compile, as an exception: thrown anywhere below compile(), caught there and
// nowhere else.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "cuda_abi.h"

namespace simulator::ptx {

class Failure : public std::runtime_error {
 public:
  Failure(std::uint32_t line, const std::string& what, CUresult code = CUDA_ERROR_INVALID_PTX)
      : std::runtime_error(line ? "ptx line " + std::to_string(line) + ": " + what
                                : "ptx: " + what),
        result(code) {}
  CUresult result;
};

}  // namespace simulator::ptx
