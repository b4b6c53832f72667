// The loops over 32 lanes that every kernel is made of. The files of this folder are compiled once
// for each instruction set of the host, each time in a namespace of its own (SIMULATOR_LANES);
// selection.cpp chooses when the program starts.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "native/simulator/ptx/lanes/form.h"
#include "native/simulator/ptx/machine/warp.h"

#ifndef SIMULATOR_LANES
#define SIMULATOR_LANES lanes_baseline
#endif

#define FOR_LANES(i) _Pragma("GCC ivdep") for (int i = 0; i < 32; ++i)

namespace simulator::ptx::SIMULATOR_LANES {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

using uint128 = unsigned __int128;
using int128 = __int128;

template <class To, class From>
[[gnu::always_inline]] inline To bitsAs(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}

/// d[i] = value(i) for the lanes in mask; the values of the others are computed as well, so `value`
/// must not trap.
template <class D, class F>
[[gnu::always_inline]] inline void assign(Warp& w, Slot slot, u32 mask, F value) {
  D* d = w.at<D>(slot);
  if (mask == kAllLanes) {
    FOR_LANES(i) d[i] = value(i);
    return;
  }
  alignas(64) D t[32];
  FOR_LANES(i) t[i] = value(i);
  FOR_LANES(i) d[i] = (mask >> i) & 1 ? t[i] : d[i];
}

template <class F, class D, class A>
const Operation* unary(Warp& w, const Operation* op, u32 mask) {
  const A* a = w.at<A>(op->slot[1]);
  assign<D>(w, op->slot[0], mask, [=](int i) { return F::template run<D>(a[i]); });
  return op + 1;
}

template <class F, class D, class A, class B>
const Operation* binary(Warp& w, const Operation* op, u32 mask) {
  const A* a = w.at<A>(op->slot[1]);
  const B* b = w.at<B>(op->slot[2]);
  assign<D>(w, op->slot[0], mask, [=](int i) { return F::template run<D>(a[i], b[i]); });
  return op + 1;
}

template <class F, class D, class A, class B, class C>
const Operation* ternary(Warp& w, const Operation* op, u32 mask) {
  const A* a = w.at<A>(op->slot[1]);
  const B* b = w.at<B>(op->slot[2]);
  const C* c = w.at<C>(op->slot[3]);
  assign<D>(w, op->slot[0], mask, [=](int i) { return F::template run<D>(a[i], b[i], c[i]); });
  return op + 1;
}

/// One bit for each lane whose element is not zero.
u32 bitsOf(const u32* truth);

Handler selectInteger(const Form& form);
Handler selectVideo(const Form& form);
Handler selectBits(const Form& form);
Handler selectFloat(const Form& form);
Handler selectHalf(const Form& form);
Handler selectCompare(const Form& form);
Handler selectConvert(const Form& form);
Handler selectMemory(const Form& form);
Handler selectAtomic(const Form& form);
Handler selectWarp(const Form& form);
Handler selectMatrix(const Form& form);

Handler select(const Form& form);

}  // namespace simulator::ptx::SIMULATOR_LANES
