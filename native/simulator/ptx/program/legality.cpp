#include "native/simulator/ptx/program/legality.h"

namespace simulator::ptx {
namespace {

bool isConvertible(Type type) {
  return isWhole(type) ||
         isOneOf(type, {Type::U8, Type::S8, Type::F16, Type::BF16, Type::F32, Type::F64});
}

/// Whether a value of `from` may lie outside of `to`.
bool maySaturate(Type to, Type from) {
  if (isSigned(from) && !isSigned(to)) return true;
  return isSigned(from) == isSigned(to) ? bytesOf(to) < bytesOf(from)
                                        : bytesOf(to) <= bytesOf(from);
}

bool isSmallPair(Type type) { return type == Type::E4M3x2 || type == Type::E5M2x2; }

/// Between pairs of 8 bits and others.
bool betweenPairs(const Form& form) {
  const bool small = isSmallPair(form.type);
  const Type other = small ? form.from : form.type;
  return form.rounding == Rounding::Nearest && !form.flush && !form.saturate &&
         form.finite == small && (other == Type::F16x2 || (small && other == Type::F32));
}

bool toNarrow(const Form& form) {
  const Rounding rounding = form.rounding;
  if (form.from != Type::F32 || form.flush || form.saturate) return false;
  const bool plain = rounding == Rounding::Nearest || rounding == Rounding::Zero;
  if (form.type != Type::TF32) return plain;
  return plain ? !form.finite : rounding == Rounding::NearestAway && !form.relu;
}

bool betweenFloats(const Form& form) {
  const bool brain = form.type == Type::BF16 || form.from == Type::BF16;
  const bool single = form.type == Type::F32 || form.from == Type::F32;
  if ((form.flush && !single) || (form.saturate && brain)) return false;
  if (form.type == Type::BF16 && form.flush) return false;
  if (form.type == form.from)
    return form.rounding == Rounding::None ? form.type != Type::BF16 : isIntegral(form.rounding);
  const bool narrows = bytesOf(form.type) <= bytesOf(form.from);
  return narrows ? isDirection(form.rounding) : form.rounding == Rounding::None;
}

}  // namespace

bool legalConversion(const Form& form) {
  if (isSmallPair(form.type) || isSmallPair(form.from)) return betweenPairs(form);
  if (isOneOf(form.type, {Type::F16x2, Type::BF16x2, Type::TF32})) return toNarrow(form);
  if (form.relu || form.finite)
    return isOneOf(form.type, {Type::F16, Type::BF16}) && toNarrow(form);
  if (!isConvertible(form.type) || !isConvertible(form.from) ||
      form.rounding == Rounding::NearestAway)
    return false;
  if (isFloat(form.type) && isFloat(form.from)) return betweenFloats(form);
  const Type other = isFloat(form.type) ? form.type : form.from;
  if (!isFloat(other))
    return form.rounding == Rounding::None && !form.flush &&
           (!form.saturate || maySaturate(form.type, form.from));
  const Type whole = isFloat(form.type) ? form.from : form.type;
  if (other == Type::BF16 && (form.saturate || bytesOf(whole) == 1)) return false;
  if (form.flush && other != Type::F32) return false;
  return isFloat(form.type) ? isDirection(form.rounding) : isIntegral(form.rounding);
}

bool legalComparison(Compare compare, bool unsignedWord, Type type, bool flush) {
  if (isFloat(type))
    return !unsignedWord && type != Type::TF32 && (!flush || type == Type::F32 || isHalf(type));
  if (flush || compare > Compare::Ge || (unsignedWord && !isUnsigned(type))) return false;
  return isWhole(type) || (isBits(type) && compare <= Compare::Ne);
}

bool legalSet(const Form& form) {
  const Type to = form.type, from = form.from;
  if (from == Type::F16x2 || from == Type::BF16x2) return to == from || isWord(to);
  if (from == Type::F16 &&
      isOneOf(to, {Type::F16, Type::BF16, Type::U16, Type::S16, Type::U32, Type::S32}))
    return to != Type::BF16 || !form.flush;
  if (from == Type::BF16)
    return isOneOf(to, {Type::BF16, Type::U16, Type::S16, Type::U32, Type::S32});
  if (!isPlain(from)) return false;
  return isWord(to) || to == Type::F32 || to == Type::F16 || (to == Type::BF16 && !form.flush);
}

bool legalAtomicVector(const Form& form, unsigned count) {
  const bool global = form.space == Space::Global || form.space == Space::Generic;
  if (!global) return false;
  if (form.type == Type::F32) return form.op == Op::AtomAdd && count <= 4;
  if (form.op != Op::AtomAdd && form.op != Op::AtomMin && form.op != Op::AtomMax) return false;
  if (form.type == Type::F16 || form.type == Type::BF16) return true;
  return (form.type == Type::F16x2 || form.type == Type::BF16x2) && count <= 4;
}

bool legalAtomic(const Form& form, bool unflushed) {
  const Type type = form.type;
  const bool narrow = isHalf(type) || isBrain(type);
  if (unflushed != narrow) return false;
  switch (form.op) {
    case Op::AtomAdd:
      return narrow || isWide(type) || isOneOf(type, {Type::U32, Type::S32, Type::U64});
    case Op::AtomAnd:
    case Op::AtomOr:
    case Op::AtomXor: return type == Type::B32 || type == Type::B64;
    case Op::AtomMin:
    case Op::AtomMax: return isWhole(type) && bytesOf(type) >= 4;
    case Op::AtomInc:
    case Op::AtomDec: return type == Type::U32;
    case Op::AtomExchange:
      return !form.noReturn && isOneOf(type, {Type::B32, Type::B64, Type::B128});
    case Op::AtomCompare: return !form.noReturn && (isBits(type) || type == Type::B128);
    default: return false;
  }
}

bool legalBulkReduction(const Form& form, bool unflushed) {
  const Type type = form.type;
  const bool global = form.space == Space::Global;
  const bool narrow = type == Type::F16 || type == Type::BF16;
  if (unflushed != (narrow && form.op == Op::AtomAdd)) return false;
  switch (form.op) {
    case Op::AtomAdd:
      return isWord(type) || type == Type::U64 || (global && (narrow || isWide(type)));
    case Op::AtomAnd:
    case Op::AtomOr:
    case Op::AtomXor: return type == Type::B32 || (global && type == Type::B64);
    case Op::AtomMin:
    case Op::AtomMax:
      return isWord(type) || (global && (narrow || isOneOf(type, {Type::U64, Type::S64})));
    case Op::AtomInc:
    case Op::AtomDec: return type == Type::U32;
    default: return false;
  }
}

}  // namespace simulator::ptx
