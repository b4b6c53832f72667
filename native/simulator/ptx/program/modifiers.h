// The words of an opcode: "ld.global.nc.v4.f32". A decoder takes the words that it
// understands; what is left over at the end means that the instruction is not implemented.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "native/simulator/ptx/lanes/form.h"
#include "native/simulator/ptx/syntax/types.h"

namespace simulator::ptx {

class Modifiers {
 public:
  explicit Modifiers(std::string_view text);
  std::string_view opcode() const { return opcode_; }
  bool take(std::string_view word);
  bool hasAny(std::initializer_list<std::string_view> words) const;
  bool takeAny(std::initializer_list<std::string_view> words);
  /// The first type that is left; None when there is none.
  Type takeType();
  /// The value of the first word that `names` has; `none` when there is none.
  template <class T>
  T takeFirst(std::span<const std::pair<std::string_view, T>> names, T none) {
    for (std::size_t i = 0; i < count_; ++i) {
      for (const auto& [name, value] : names) {
        if (words_[i] != name) continue;
        words_[i] = {};
        return value;
      }
    }
    return none;
  }
  Rounding takeRounding();
  bool takeCompare(Compare& compare, Type type);
  Boolean takeBoolean();
  /// A state space; Generic when none is named.
  Space takeSpace();
  /// Words about ordering, scope and caches, which mean nothing to a machine whose memory is
  /// coherent.
  void takeMemoryHints();
  bool empty() const;
  void clear() { count_ = 0; }

 private:
  std::string_view opcode_;
  std::array<std::string_view, 24> words_;
  std::size_t count_ = 0;
};

}  // namespace simulator::ptx
