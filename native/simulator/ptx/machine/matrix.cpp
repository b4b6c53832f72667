#include "native/simulator/ptx/machine/matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "native/simulator/ptx/machine/addresses.h"

namespace simulator::ptx {
namespace {

constexpr unsigned kTemporary = 16;  ///< bytes of a lane

MatrixAccess accessOf(const Operation* op) {
  const std::uint32_t words[2] = {op->detail, op->target};
  static_assert(sizeof(MatrixAccess) == sizeof words);
  return std::bit_cast<MatrixAccess>(words);
}

unsigned bytesInRegister(Type type) { return type == Type::TF32 ? 4 : bytesOf(type); }

/// The host's address of one element; null after a fault.
std::uint8_t* elementAt(Warp& w, const Operation* op, const MatrixAccess& access, unsigned lane,
                        unsigned element) {
  const Fragment& fragment = access.fragment;
  const unsigned number =
      (lane * fragment.perLane + element) % (unsigned{fragment.rows} * fragment.columns);
  const std::uint64_t row = number / fragment.columns, column = number % fragment.columns;
  const std::uint64_t stride = w.at<std::uint32_t>(op->slot[5])[lane],
                      bytes = bytesInRegister(fragment.type);
  std::uint64_t address =
      addressOfLane(w, op, lane) +
      (access.columnMajor ? column * stride + row : row * stride + column) * bytes;
  if (access.shared && address >> kWindowShift == 0) address |= kSharedWindow;
  void* found = address % bytes ? nullptr : hostAddress(w, lane, address, bytes);
  if (!found)
    w.fault(address % bytes ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS, op);
  return static_cast<std::uint8_t*>(found);
}

/// Calls act(memory, in the register) for each element of the operation's registers.
template <class F>
const Operation* eachElement(Warp& w, const Operation* op, std::uint32_t mask,
                             std::uint8_t registers, F act) {
  const MatrixAccess access = accessOf(op);
  const unsigned bytes = bytesInRegister(access.fragment.type), registerBytes = std::max(4u, bytes),
                 inRegister = registerBytes / bytes;
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    for (unsigned i = 0; i < 4; ++i) {
      if (!(registers & (1u << i))) continue;
      std::uint8_t* value = w.at<std::uint8_t>(op->slot[i]) + lane * registerBytes;
      for (unsigned e = 0; e < inRegister; ++e) {
        std::uint8_t* memory = elementAt(w, op, access, lane, access.first + i * inRegister + e);
        if (!memory) return nullptr;
        act(memory, value + e * bytes, bytes);
      }
    }
  }
  return op + 1;
}

double halfValue(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  } else {
    value = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  }
  return bits & 0x8000 ? -value : value;
}

/// Rounds to the nearest, ties to even.
std::uint16_t halfBits(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return 0x7fff;
  const double size = std::fabs(value);
  if (size >= 65520) return sign | 0x7c00;
  const int exponent = size < std::ldexp(1, -14) ? -14 : std::ilogb(size);
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  const std::uint32_t bits =
      units < 1024 ? units : (static_cast<std::uint32_t>(exponent + 14) << 10) + units;
  return static_cast<std::uint16_t>(sign | bits);
}

template <class T>
T read(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double realValue(Type type, const std::uint8_t* at) {
  switch (type) {
    case Type::F16: return halfValue(read<std::uint16_t>(at));
    case Type::BF16: return std::bit_cast<float>(std::uint32_t{read<std::uint16_t>(at)} << 16);
    case Type::TF32: return std::bit_cast<float>(read<std::uint32_t>(at) & ~0x1fffu);
    case Type::F32: return read<float>(at);
    default: return read<double>(at);
  }
}

std::int64_t integerValue(Type type, const std::uint8_t* at) {
  if (type == Type::U8) return *at;
  return type == Type::S8 ? static_cast<std::int8_t>(*at) : read<std::int32_t>(at);
}

/// The bytes of one matrix, gathered from two temporaries of each lane.
class Gathered {
 public:
  Gathered(Warp& w, Slot low, Slot high, unsigned perLane, Type type)
      : w_(w), slot_{low, high}, perLane_(perLane), type_(type) {}
  std::uint8_t* at(unsigned number) const {
    const unsigned lane = number / perLane_, byte = number % perLane_ * bytesInRegister(type_);
    return w_.at<std::uint8_t>(slot_[byte / kTemporary]) + lane * kTemporary + byte % kTemporary;
  }
  double real(unsigned number) const { return realValue(type_, at(number)); }
  std::int64_t integer(unsigned number) const { return integerValue(type_, at(number)); }

 private:
  Warp& w_;
  Slot slot_[2];
  unsigned perLane_;
  Type type_;
};

void writeReal(Type type, std::uint8_t* at, double value) {
  if (type == Type::F16) {
    const std::uint16_t bits = halfBits(value);
    std::memcpy(at, &bits, sizeof bits);
  } else if (type == Type::F32) {
    const auto rounded = static_cast<float>(value);
    std::memcpy(at, &rounded, sizeof rounded);
  } else {
    std::memcpy(at, &value, sizeof value);
  }
}

void writeInteger(std::uint8_t* at, std::int64_t value, bool saturates) {
  using Limits = std::numeric_limits<std::int32_t>;
  const auto bits = static_cast<std::int32_t>(
      saturates ? std::clamp<std::int64_t>(value, Limits::min(), Limits::max()) : value);
  std::memcpy(at, &bits, sizeof bits);
}

}  // namespace

const Operation* loadMatrix(Warp& w, const Operation* op, std::uint32_t mask) {
  return eachElement(w, op, mask, op->defines,
                     [](const std::uint8_t* memory, std::uint8_t* value, unsigned bytes) {
                       std::memcpy(value, memory, bytes);
                     });
}

const Operation* storeMatrix(Warp& w, const Operation* op, std::uint32_t mask) {
  return eachElement(w, op, mask, op->uses & 15,
                     [](std::uint8_t* memory, const std::uint8_t* value, unsigned bytes) {
                       std::memcpy(memory, value, bytes);
                     });
}

const Operation* multiplyMatrices(Warp& w, const Operation* op, std::uint32_t mask) {
  if (mask != kAllLanes) return w.fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, op);
  const auto product = std::bit_cast<MatrixProduct>(op->immediate);
  const auto perLane = [&](unsigned i) { return op->detail >> (8 * i) & 0xff; };
  const Gathered d(w, op->slot[0], op->slot[1], perLane(0), product.d),
      a(w, op->slot[2], op->slot[3], perLane(1), product.a),
      b(w, op->slot[4], op->slot[5], perLane(2), product.b),
      c(w, op->slot[6], op->slot[7], perLane(3), product.c);
  for (unsigned row = 0; row < product.rows; ++row) {
    for (unsigned column = 0; column < product.columns; ++column) {
      const unsigned at = row * product.columns + column;
      if (isFloat(product.d)) {
        double sum = c.real(at);
        for (unsigned k = 0; k < product.depth; ++k) {
          sum =
              std::fma(a.real(row * product.depth + k), b.real(k * product.columns + column), sum);
        }
        writeReal(product.d, d.at(at), sum);
      } else {
        std::int64_t sum = c.integer(at);
        for (unsigned k = 0; k < product.depth; ++k)
          sum += a.integer(row * product.depth + k) * b.integer(k * product.columns + column);
        writeInteger(d.at(at), sum, product.saturates);
      }
    }
  }
  return op + 1;
}

const Operation* gatherFragment(Warp& w, const Operation* op, std::uint32_t mask) {
  std::uint8_t* to = w.at<std::uint8_t>(op->slot[0]);
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    for (unsigned i = 0; i < 4; ++i) {
      if (!(op->uses & (2u << i))) continue;
      std::memcpy(to + lane * kTemporary + i * op->width,
                  w.at<std::uint8_t>(op->slot[1 + i]) + lane * op->width, op->width);
    }
  }
  return op + 1;
}

const Operation* spreadFragment(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint8_t* from = w.at<std::uint8_t>(op->slot[4]);
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    for (unsigned i = 0; i < 4; ++i) {
      if (!(op->defines & (1u << i))) continue;
      std::memcpy(w.at<std::uint8_t>(op->slot[i]) + lane * op->width,
                  from + lane * kTemporary + i * op->width, op->width);
    }
  }
  return op + 1;
}

}  // namespace simulator::ptx
