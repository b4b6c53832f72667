#pragma once

#include <type_traits>

namespace simulator {

/// The least multiple of `unit` that is not less than `value`.
template <class Number>
constexpr Number roundUp(Number value, std::type_identity_t<Number> unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace simulator
