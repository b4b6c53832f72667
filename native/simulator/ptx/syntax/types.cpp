#include "native/simulator/ptx/syntax/types.h"

#include <array>
#include <utility>

namespace simulator::ptx {

Type typeNamed(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, Type>, 26> kNames{{
      {"u32", Type::U32},       {"b32", Type::B32},       {"s32", Type::S32},
      {"f32", Type::F32},       {"u64", Type::U64},       {"b64", Type::B64},
      {"s64", Type::S64},       {"f64", Type::F64},       {"pred", Type::Pred},
      {"b8", Type::B8},         {"b16", Type::B16},       {"b128", Type::B128},
      {"u8", Type::U8},         {"u16", Type::U16},       {"s8", Type::S8},
      {"s16", Type::S16},       {"f16", Type::F16},       {"f16x2", Type::F16x2},
      {"bf16", Type::BF16},     {"bf16x2", Type::BF16x2}, {"tf32", Type::TF32},
      {"texref", Type::Opaque}, {"u16x2", Type::U16x2},   {"s16x2", Type::S16x2},
      {"e4m3x2", Type::E4M3x2}, {"e5m2x2", Type::E5M2x2},
  }};
  for (const auto& [name, type] : kNames) {
    if (name == word) return type;
  }
  return word == "samplerref" || word == "surfref" ? Type::Opaque : Type::None;
}

}  // namespace simulator::ptx
