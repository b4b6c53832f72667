#include "native/simulator/ptx/program/modifiers.h"

#include <algorithm>
#include <utility>

namespace simulator::ptx {

Modifiers::Modifiers(std::string_view text) {
  std::size_t at = text.find('.');
  opcode_ = text.substr(0, at);
  while (at != std::string_view::npos && count_ < words_.size()) {
    const std::size_t end = text.find('.', at + 1);
    words_[count_++] = text.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
    at = end;
  }
}

bool Modifiers::take(std::string_view word) {
  for (std::size_t i = 0; i < count_; ++i) {
    if (words_[i] != word) continue;
    words_[i] = {};
    return true;
  }
  return false;
}

bool Modifiers::hasAny(std::initializer_list<std::string_view> words) const {
  return std::any_of(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(count_),
                     [&](std::string_view word) {
                       return std::find(words.begin(), words.end(), word) != words.end();
                     });
}

bool Modifiers::takeAny(std::initializer_list<std::string_view> words) {
  bool any = false;
  for (const std::string_view word : words) any |= take(word);
  return any;
}

Type Modifiers::takeType() {
  for (std::size_t i = 0; i < count_; ++i) {
    const Type type = typeNamed(words_[i]);
    if (type == Type::None) continue;
    words_[i] = {};
    return type;
  }
  return Type::None;
}

Rounding Modifiers::takeRounding() {
  static constexpr std::pair<std::string_view, Rounding> kNames[] = {
      {"rn", Rounding::Nearest},      {"rz", Rounding::Zero},
      {"rm", Rounding::Down},         {"rp", Rounding::Up},
      {"rna", Rounding::NearestAway}, {"rni", Rounding::IntegerNearest},
      {"rzi", Rounding::IntegerZero}, {"rmi", Rounding::IntegerDown},
      {"rpi", Rounding::IntegerUp}};
  for (const auto& [name, rounding] : kNames) {
    if (take(name)) return rounding;
  }
  return Rounding::None;
}

bool Modifiers::takeCompare(Compare& compare, Type type) {
  static constexpr std::pair<std::string_view, Compare> kNames[] = {
      {"eq", Compare::Eq},   {"ne", Compare::Ne},   {"lt", Compare::Lt},   {"le", Compare::Le},
      {"gt", Compare::Gt},   {"ge", Compare::Ge},   {"equ", Compare::Equ}, {"neu", Compare::Neu},
      {"ltu", Compare::Ltu}, {"leu", Compare::Leu}, {"gtu", Compare::Gtu}, {"geu", Compare::Geu},
      {"num", Compare::Num}, {"nan", Compare::Nan}, {"lo", Compare::Lt},   {"ls", Compare::Le},
      {"hi", Compare::Gt},   {"hs", Compare::Ge}};
  for (const auto& [name, value] : kNames) {
    if (!take(name)) continue;
    compare = value;
    return isFloat(type) || value <= Compare::Ge;
  }
  return false;
}

Boolean Modifiers::takeBoolean() {
  if (take("and")) return Boolean::And;
  if (take("or")) return Boolean::Or;
  return take("xor") ? Boolean::Xor : Boolean::None;
}

Space Modifiers::takeSpace() {
  if (takeAny({"global"})) return Space::Global;
  if (takeAny({"shared", "shared::cta", "shared::cluster"})) return Space::Shared;
  if (take("local")) return Space::Local;
  if (take("const")) return Space::Const;
  return takeAny({"param", "param::entry", "param::func"}) ? Space::Param : Space::Generic;
}

void Modifiers::takeMemoryHints() {
  takeAny({"weak",
           "volatile",
           "relaxed",
           "acquire",
           "release",
           "acq_rel",
           "sc",
           "mmio",
           "cta",
           "cluster",
           "gpu",
           "sys",
           "nc",
           "ca",
           "cg",
           "cs",
           "lu",
           "cv",
           "wb",
           "wt",
           "L2::64B",
           "L2::128B",
           "L2::256B",
           "L1::evict_normal",
           "L1::evict_unchanged",
           "L1::evict_first",
           "L1::evict_last",
           "L1::no_allocate",
           "L2::evict_normal",
           "L2::evict_first",
           "L2::evict_last",
           "unified"});
}

bool Modifiers::empty() const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (!words_[i].empty()) return false;
  }
  return true;
}

}  // namespace simulator::ptx
