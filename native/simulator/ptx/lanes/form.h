// How the decoder asks for a lane kernel: what it does, to which type, with which modifiers.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/machine/operation.h"
#include "native/simulator/ptx/syntax/types.h"

namespace simulator::ptx {

enum class Op : std::uint8_t {
  // integer.cpp
  Add,
  Sub,
  MulLow,
  MulHigh,
  MulWide,
  MadLow,
  MadHigh,
  MadWide,
  Mul24Low,
  Mul24High,
  Mad24Low,
  Mad24High,
  Sad,
  Div,
  Rem,
  Abs,
  Neg,
  Min,
  Max,
  AddSaturated,
  SubSaturated,
  AddCarry,
  SubCarry,
  MadLowCarry,
  MadHighCarry,
  Dp4a,
  Dp2a,
  MadHighSaturated,
  Mad24HighSaturated,
  MinRelu,
  MaxRelu,
  // video.cpp
  VideoAdd,
  VideoSub,
  VideoAverage,
  VideoDifference,
  VideoMin,
  VideoMax,
  VideoSet,
  // bits.cpp
  And,
  Or,
  Xor,
  Not,
  Cnot,
  ShiftLeft,
  ShiftRight,
  FunnelLeft,
  FunnelRight,
  Popc,
  Clz,
  Bfind,
  BfindShift,
  Brev,
  Bfe,
  Bfi,
  Bmsk,
  Szext,
  Fns,
  Permute,
  Lop3,
  Lop3Predicate,
  Copy,
  Pack,
  Unpack,
  PackSaturated,
  PredicateAnd,
  PredicateOr,
  PredicateXor,
  PredicateNot,
  PredicateCopy,
  PredicateLop3,
  Broadcast,
  // float.cpp, double.cpp, half.cpp
  Mul,
  Fma,
  Sqrt,
  Rcp,
  Rsqrt,
  Copysign,
  Sin,
  Cos,
  Lg2,
  Ex2,
  Tanh,
  DivApprox,
  Testp,
  // compare.cpp
  SetPredicate,
  SetValue,
  Select,
  SelectBySign,
  // convert.cpp
  Convert,
  ConvertPair,
  // memory.cpp
  Load,
  Store,
  LoadParameter,
  LocalAddress,
  ToGeneric,
  FromGeneric,
  IsSpace,
  CopyAsync,
  MapRank,
  GetRank,
  Touch,
  // atomic.cpp
  AtomAdd,
  AtomAnd,
  AtomOr,
  AtomXor,
  AtomMin,
  AtomMax,
  AtomInc,
  AtomDec,
  AtomExchange,
  AtomCompare,
  // warp.cpp
  ShuffleUp,
  ShuffleDown,
  ShuffleButterfly,
  ShuffleIndex,
  VoteAll,
  VoteAny,
  VoteUniform,
  VoteBallot,
  MatchAny,
  MatchAll,
  ReduxAdd,
  ReduxMin,
  ReduxMax,
  ReduxAnd,
  ReduxOr,
  ReduxXor,
  Elect,
  WarpBarrier,
  ActiveMask,
  // matrix.cpp
  MultiplyMatrices,
  LoadMatrixRows,
  StoreMatrixRows,
  TransposeMatrix,
};

enum class Compare : std::uint8_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan
};
enum class Boolean : std::uint8_t { None, And, Or, Xor };
enum class Rounding : std::uint8_t {
  None,
  Nearest,
  Zero,
  Down,
  Up,
  NearestAway,
  IntegerNearest,
  IntegerZero,
  IntegerDown,
  IntegerUp
};

struct Form {
  Op op{};
  Type type = Type::None;
  Type from = Type::None;  ///< cvt, set, slct: type of the source; ld, st: width of the register
  Compare compare{};
  Boolean boolean{};
  Rounding rounding{};
  Space space = Space::Generic;
  bool carryIn = false, carryOut = false;
  bool saturate = false;
  bool finite = false;   ///< .satfinite
  bool flush = false;    ///< .ftz
  bool nan = false;      ///< .NaN
  bool xorSign = false;  ///< .xorsign.abs
  bool relu = false;
  bool noReturn = false;      ///< red
  bool bulk = false;          ///< cp.reduce.async.bulk
  bool secondSigned = false;  ///< dp4a, dp2a: type of b
  unsigned sourceBytes = 4;   ///< cvt, ld, st: width of the register, which may exceed the type
};

/// A kernel for the form, of the best instruction set that this CPU has; null when there is none.
Handler laneKernel(const Form& form);

/// Runs `inner` under the mxcsr in `detail`.
const Operation* withRounding(Warp& warp, const Operation* op, std::uint32_t mask);

}  // namespace simulator::ptx
