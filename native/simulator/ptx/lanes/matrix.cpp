// Products of matrices that the lanes of a warp hold together; matrices that they load, store and
// transpose together. The decoder lets the lanes converge first.
//
// The order in which hardware adds the products is open. Here they are added in double, which is
// exact for almost all operands of 16 bits and fewer, and rounded once.
#include <limits>

#include "native/simulator/ptx/lanes/access.h"
#include "native/simulator/ptx/lanes/formats.h"
#include "native/simulator/ptx/lanes/memory.h"
#include "native/simulator/ptx/machine/matrix.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

/// Elements of the largest operand.
constexpr unsigned kLargest = 1024;

template <Element element>
[[gnu::always_inline]] inline double realOf(u32 bits) {
  switch (element) {
    case Element::F16: return Half::widen(u16(bits));
    case Element::BF16: return Brain::widen(u16(bits));
    case Element::TF32: return bitsAs<float>(bits & ~0x1fffu);
    case Element::E4M3: return E4M3::widen(u8(bits));
    case Element::E5M2: return E5M2::widen(u8(bits));
    default: return bitsAs<float>(bits);
  }
}
template <Element element>
[[gnu::always_inline]] inline s32 wholeOf(u32 bits) {
  switch (element) {
    case Element::S8: return s8(bits);
    case Element::U8: return u8(bits);
    case Element::S4: return s32(bits << 28) >> 28;
    case Element::U4: return s32(bits & 15);
    default: return s32(bits);
  }
}
template <Element element, class T>
[[gnu::always_inline]] inline T valueOf(u32 bits) {
  if constexpr (std::is_same_v<T, double>)
    return realOf<element>(bits);
  else
    return wholeOf<element>(bits);
}

/// Spreads the registers of `op`, which hold the fragment, over the matrix.
template <Element element, class T>
void unpackAs(Warp& w, const Operation* op, const Fragment& fragment, T* matrix) {
  constexpr unsigned kBits = bitsOf(element), kCount = 32 / kBits;
  for (unsigned r = 0; r < fragment.registers; ++r) {
    const u32* value = w.at<u32>(op->slot[r]);
    for (unsigned e = 0; e < kCount; ++e) {
      alignas(64) T decoded[kLanes];
      FOR_LANES(i) decoded[i] = valueOf<element, T>(value[i] >> (e * kBits));
      T* to = matrix + e * fragment.step;
      for (unsigned lane = 0; lane < kLanes; ++lane) to[fragment.first[r][lane]] = decoded[lane];
    }
  }
}

void unpack(Warp& w, const Operation* op, const Fragment& fragment, double* matrix) {
  switch (fragment.element) {
    case Element::F16: return unpackAs<Element::F16>(w, op, fragment, matrix);
    case Element::BF16: return unpackAs<Element::BF16>(w, op, fragment, matrix);
    case Element::TF32: return unpackAs<Element::TF32>(w, op, fragment, matrix);
    case Element::E4M3: return unpackAs<Element::E4M3>(w, op, fragment, matrix);
    case Element::E5M2: return unpackAs<Element::E5M2>(w, op, fragment, matrix);
    case Element::F32: return unpackAs<Element::F32>(w, op, fragment, matrix);
    default: break;
  }
  for (unsigned r = 0; r < fragment.registers; ++r) {
    const double* value = w.at<double>(op->slot[r]);
    for (unsigned lane = 0; lane < kLanes; ++lane) matrix[fragment.first[r][lane]] = value[lane];
  }
}

void unpack(Warp& w, const Operation* op, const Fragment& fragment, s32* matrix) {
  switch (fragment.element) {
    case Element::S8: return unpackAs<Element::S8>(w, op, fragment, matrix);
    case Element::U8: return unpackAs<Element::U8>(w, op, fragment, matrix);
    case Element::S4: return unpackAs<Element::S4>(w, op, fragment, matrix);
    case Element::U4: return unpackAs<Element::U4>(w, op, fragment, matrix);
    default: return unpackAs<Element::S32>(w, op, fragment, matrix);
  }
}

/// Calls write(lane, place of the register in the matrix) for each register and lane.
template <class T, class F>
void eachResult(Warp& w, const Operation* op, u32 mask, const Fragment& fragment, F value) {
  for (unsigned r = 0; r < fragment.registers; ++r) {
    T* to = w.at<T>(op->slot[r]);
    for (u32 left = mask; left; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      to[lane] = value(fragment.first[r][lane]);
    }
  }
}

void pack(Warp& w, const Operation* op, u32 mask, const Fragment& d, const double* matrix) {
  if (d.element == Element::F64)
    return eachResult<double>(w, op, mask, d, [&](unsigned at) { return matrix[at]; });
  if (d.element == Element::F32)
    return eachResult<float>(w, op, mask, d,
                             [&](unsigned at) { return canonical(float(matrix[at])); });
  eachResult<u32>(w, op, mask, d, [&](unsigned at) {
    return u32(Half::narrow(matrix[at])) | u32(Half::narrow(matrix[at + d.step])) << 16;
  });
}

struct Fused {
  [[gnu::always_inline]] static double run(double a, double b, double c) {
    return __builtin_fma(a, b, c);
  }
};
struct Rounded {  // what is smaller than double has exact products
  [[gnu::always_inline]] static double run(double a, double b, double c) { return a * b + c; }
};
struct Whole {
  [[gnu::always_inline]] static s32 run(s32 a, s32 b, s32 c) {
    return s32(u32(a) * u32(b) + u32(c));
  }
};
struct Common {
  [[gnu::always_inline]] static s32 run(s32 a, s32 b, s32 c) {
    return c + __builtin_popcount(u32(a) & u32(b));
  }
};
struct Different {
  [[gnu::always_inline]] static s32 run(s32 a, s32 b, s32 c) {
    return c + __builtin_popcount(u32(a) ^ u32(b));
  }
};

/// sum += a * b, where F multiplies and adds. A row of the sum stays in registers.
template <unsigned columns, class F, class T>
void accumulateRows(const MatrixProduct& product, const T* a, const T* b, T* sum) {
  const unsigned width = product.quads ? 4 * columns : columns;
  for (unsigned row = 0; row < product.rows; ++row) {
    const T* line = product.quads ? b + row / 8 * 8 : b;
    alignas(64) T total[columns];
    std::memcpy(total, sum + row * columns, sizeof total);
    for (unsigned k = 0; k < product.depth; ++k) {
      const T factor = a[row * product.depth + k];
      for (unsigned column = 0; column < columns; ++column)
        total[column] = F::run(factor, line[k * width + column], total[column]);
    }
    std::memcpy(sum + row * columns, total, sizeof total);
  }
}
template <class F, class T>
void accumulate(const MatrixProduct& product, const T* a, const T* b, T* sum) {
  switch (product.columns) {
    case 8: return accumulateRows<8, F>(product, a, b, sum);
    case 16: return accumulateRows<16, F>(product, a, b, sum);
    default: return accumulateRows<32, F>(product, a, b, sum);
  }
}

void multiplyReal(Warp& w, const Operation* op, u32 mask, const MatrixProduct& product) {
  alignas(64) double a[kLargest], b[kLargest], sum[kLargest];
  unpack(w, op + 1, product.a, a);
  unpack(w, op + 2, product.b, b);
  unpack(w, op + 3, product.c, sum);
  if (product.a.element == Element::F64)
    accumulate<Fused>(product, a, b, sum);
  else
    accumulate<Rounded>(product, a, b, sum);
  pack(w, op + 4, mask, product.d, sum);
}

void multiplyWhole(Warp& w, const Operation* op, u32 mask, const MatrixProduct& product) {
  alignas(64) s32 a[kLargest], b[kLargest], c[kLargest], sum[kLargest] = {};
  unpack(w, op + 1, product.a, a);
  unpack(w, op + 2, product.b, b);
  unpack(w, op + 3, product.c, c);
  if (product.a.element != Element::B1)
    accumulate<Whole>(product, a, b, sum);
  else if (product.conjunction)
    accumulate<Common>(product, a, b, sum);
  else
    accumulate<Different>(product, a, b, sum);
  using Limits = std::numeric_limits<s32>;
  eachResult<s32>(w, op + 4, mask, product.d, [&](unsigned at) {
    const s64 exact = s64(c[at]) + sum[at];
    if (!product.saturates) return s32(u32(exact));
    return exact < Limits::min()   ? Limits::min()
           : exact > Limits::max() ? Limits::max()
                                   : s32(exact);
  });
}

/// `target` is the product's number. The four operations behind this one carry, in all their slots,
/// the registers of a, b, c and d, and do nothing themselves.
const Operation* multiply(Warp& w, const Operation* op, u32 mask) {
  const MatrixProduct& product = *w.frame->code->products[op->target];
  if (isWhole(product.a.element))
    multiplyWhole(w, op, mask, product);
  else
    multiplyReal(w, op, mask, product);
  return op + 5;
}

/// ldmatrix and stmatrix: lane 8 * i + j has the address of row j of matrix i, which is register i;
/// `width` matrices of 8 x 8 elements of 16 bits. `detail`: columns and rows change places.
constexpr unsigned kRowBytes = 16;

[[gnu::always_inline]] inline u16* halves(Warp& w, Slot slot) { return w.at<u16>(slot); }

u32 lanesWithRows(const Operation* op) { return op->width == 4 ? ~0u : (1u << 8 * op->width) - 1; }

/// Place of element e of a lane's register: the row's lane, and the index in the row.
struct Corner {
  unsigned row, column;
};
[[gnu::always_inline]] inline Corner corner(const Operation* op, unsigned matrix, unsigned lane,
                                            unsigned e) {
  const unsigned line = lane / 4, place = lane % 4 * 2 + e;
  return op->detail ? Corner{8 * matrix + place, line} : Corner{8 * matrix + line, place};
}

template <Space space>
const Operation* loadRows(Warp& w, const Operation* op, u32 mask) {
  alignas(64) u64 address[32];
  alignas(64) u16 row[32][kRowBytes / 2];
  const u32 lanes = lanesWithRows(op);
  w.turn = 0;
  if (!resolve<space, Use::read>(w, op, lanes, kRowBytes, address)) return nullptr;
  for (u32 left = lanes; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    readOnce<kRowBytes>(row[i], address[i]);
  }
  for (unsigned matrix = 0; matrix < op->width; ++matrix) {
    if (!op->detail) {  // a register has the rows one behind the other
      alignas(64) u32 words[kLanes];
      std::memcpy(words, row[8 * matrix], sizeof words);
      assign<u32>(w, op->slot[matrix], mask, [&](int i) { return words[i]; });
      continue;
    }
    u16* to = halves(w, op->slot[matrix]);
    for (u32 left = mask; left; left &= left - 1) {
      const unsigned lane = unsigned(__builtin_ctz(left));
      for (unsigned e = 0; e < 2; ++e) {
        const Corner at = corner(op, matrix, lane, e);
        to[2 * lane + e] = row[at.row][at.column];
      }
    }
  }
  return op + 1;
}

template <Space space>
const Operation* storeRows(Warp& w, const Operation* op, u32) {
  alignas(64) u64 address[32];
  alignas(64) u16 row[32][kRowBytes / 2];
  const u32 lanes = lanesWithRows(op);
  if (!resolve<space, Use::write>(w, op, lanes, kRowBytes, address)) return nullptr;
  for (unsigned matrix = 0; matrix < op->width; ++matrix) {
    const u16* from = halves(w, op->slot[matrix]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned e = 0; e < 2; ++e) {
        const Corner at = corner(op, matrix, lane, e);
        row[at.row][at.column] = from[2 * lane + e];
      }
    }
  }
  for (u32 left = lanes; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    writeOnce<kRowBytes>(address[i], row[i]);
  }
  return op + 1;
}

/// movmatrix.trans.
const Operation* transpose(Warp& w, const Operation* op, u32 mask) {
  alignas(64) u16 from[64];
  std::memcpy(from, w.at<u16>(op->slot[1]), sizeof from);
  u16* to = w.at<u16>(op->slot[0]);
  for (u32 left = mask; left; left &= left - 1) {
    const unsigned lane = unsigned(__builtin_ctz(left));
    for (unsigned e = 0; e < 2; ++e) to[2 * lane + e] = from[8 * (lane % 4 * 2 + e) + lane / 4];
  }
  return op + 1;
}

}  // namespace

Handler selectMatrix(const Form& form) {
  const bool shared = form.space == Space::Shared;
  switch (form.op) {
    case Op::MultiplyMatrices: return multiply;
    case Op::LoadMatrixRows: return shared ? loadRows<Space::Shared> : loadRows<Space::Generic>;
    case Op::StoreMatrixRows: return shared ? storeRows<Space::Shared> : storeRows<Space::Generic>;
    case Op::TransposeMatrix: return transpose;
    default: return nullptr;
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
