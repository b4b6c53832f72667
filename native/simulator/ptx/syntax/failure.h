// Why a text did not compile, as an exception: thrown anywhere below compile(), caught there and
// nowhere else.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

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

/// A name that this text does not define. Another one may, before they are linked.
class Undefined : public Failure {
 public:
  Undefined(std::uint32_t line, std::string_view name)
      : Failure(line, "undefined reference to '" + std::string(name) + "'") {}
};

/// A name that several texts define.
class DefinedAgain : public Failure {
 public:
  DefinedAgain(std::uint32_t line, std::string_view name)
      : Failure(line, "'" + std::string(name) + "' is defined in more than one module") {}
};

}  // namespace simulator::ptx
