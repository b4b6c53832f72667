// The words of PTX that more than one room needs: types, state spaces, linkage.
#pragma once

#include <cstdint>
#include <string_view>

namespace simulator::ptx {

enum class Type : std::uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  U16x2,
  S16x2,
  F16,
  F16x2,
  BF16,
  BF16x2,
  E4M3x2,
  E5M2x2,
  TF32,
  F32,
  F64,
  Opaque,  ///< .texref, .samplerref, .surfref
};

enum class Space : std::uint8_t { Generic, Register, Global, Shared, Local, Const, Param };

enum class Linkage : std::uint8_t { Internal, Visible, Extern, Weak, Common };

/// The type that a modifier spells without its dot ("u32"); None for any other word.
Type typeNamed(std::string_view word);

/// Bytes that a value of this type takes in memory. A predicate has none.
constexpr unsigned bytesOf(Type type) {
  switch (type) {
    case Type::B8:
    case Type::U8:
    case Type::S8: return 1;
    case Type::B16:
    case Type::U16:
    case Type::S16:
    case Type::F16:
    case Type::BF16:
    case Type::E4M3x2:
    case Type::E5M2x2: return 2;
    case Type::B32:
    case Type::U32:
    case Type::S32:
    case Type::F16x2:
    case Type::BF16x2:
    case Type::TF32:
    case Type::F32:
    case Type::U16x2:
    case Type::S16x2: return 4;
    case Type::B64:
    case Type::U64:
    case Type::S64:
    case Type::F64:
    case Type::Opaque: return 8;
    case Type::B128: return 16;
    case Type::None:
    case Type::Pred: return 0;
  }
  return 0;
}

constexpr bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 || type == Type::S64 ||
         type == Type::S16x2;
}
constexpr bool isFloat(Type type) { return type >= Type::F16 && type <= Type::F64; }
constexpr bool isInteger(Type type) {
  return type >= Type::B8 && type <= Type::S64 && type != Type::B128;
}

}  // namespace simulator::ptx
