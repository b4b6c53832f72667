#include "native/simulator/test/instructions/operands.h"

#include <algorithm>
#include <cmath>

#include "native/simulator/test/instructions/float_shared.h"

namespace instructions {
namespace {

constexpr std::size_t kCombinations = 4096, kRandom = 1024, kStep = 256;

/// splitmix64.
class Random {
 public:
  explicit Random(u64 seed) : state_(seed) {}
  u64 next() {
    u64 z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  u64 below(u64 limit) { return next() % limit; }

 private:
  u64 state_;
};

std::vector<u64> integerEdges(unsigned bits) {
  const u64 sign = u64{1} << (bits - 1), ones = cut(~u64{0}, bits);
  std::vector<u64> edges{0,
                         1,
                         ones,
                         sign,
                         sign - 1,
                         2,
                         ones - 1,
                         sign + 1,
                         3,
                         7,
                         sign - 2,
                         0x7f,
                         0x80,
                         0xff,
                         ones - 127,
                         ones - 128,
                         0x5555555555555555,
                         0xaaaaaaaaaaaaaaaa,
                         sign >> 1,
                         0x0123456789abcdef,
                         0xfedcba9876543210,
                         ones >> (bits / 2)};
  for (const u64 v : {0x8000ull, 0x7fffull, 0xffffull, 0x10000ull, 0x7fffffull, 0x800000ull,
                      0xffffffull, 0x1000000ull, 0x1000001ull}) {
    edges.push_back(v);
    edges.push_back(0 - v);
  }
  for (const u64 v :
       {0x7fffffffull, 0x80000000ull, 0xffffffffull, 0x100000000ull, 0x20000000000001ull,
        0x20000000000003ull, 0x7fffffffffffff00ull, 0x7ffffffffffffc00ull, 0x7fffff8000000000ull,
        0x8000008000000001ull, 0x8000008000000000ull}) {
    edges.push_back(v);
    edges.push_back(0 - v);
  }
  for (unsigned i = 0; i < bits; i += 7) edges.push_back(u64{1} << i);
  return edges;
}

std::vector<u64> amountEdges() {
  return {0,          1,          31,         32,         33,         64,    63, 16,
          8,          15,         255,        256,        0xffffffff, 65,    17, 24,
          7,          48,         2,          128,        30,         127,   4,  0x120,
          0x7fffffff, 0x80000000, 0x80000001, 0xfffffff0, 0xffffffe0, 0x1f00};
}

/// Numbers that a test of integers or of another format finds interesting, rounded to this one.
constexpr double kNumbers[] = {0.5,
                               1.5,
                               2.5,
                               -0.5,
                               -1.5,
                               3,
                               65504,
                               65519.99,
                               65520,
                               127.5,
                               128,
                               -128.5,
                               255.5,
                               256,
                               -129,
                               32767.5,
                               32768,
                               65535.5,
                               65536,
                               0x1p31,
                               -0x1p31,
                               0x1p32,
                               0x1p63,
                               -0x1p63,
                               0x1p64,
                               -0x1.000002p31,
                               0x1.fffffep30,
                               0x1p-14,
                               0x1p-24,
                               0x1p-25,
                               0x1.8p-25,
                               0x1.ffcp-15,
                               3.14159265,
                               1e-30,
                               1e10,
                               0x1p24,
                               0x1p53,
                               0x1.fffffffffffffp62,
                               0x1.fffffep127,
                               0x1.ffffffp127,
                               0x1p-126,
                               0x1.fffffcp-127,
                               0x1p-149,
                               0x1p-150,
                               0x1.000001p0,
                               0x1.000003p0,
                               0x1.002p0,
                               0x1.006p0,
                               0x1.01p0,
                               0x1.03p0,
                               0x1.fep127,
                               0x1.ffp127,
                               100,
                               -7.25,
                               0x1p126,
                               0x1.8p126,
                               0x1p127,
                               -90,
                               88.5,
                               128.5,
                               -126.5,
                               -149.5,
                               -150.5,
                               10.25,
                               0.9999999};

u64 nearest(double value, const Format& format) {
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  const auto mantissa = static_cast<u64>(std::ldexp(fraction, 60));
  return encode({Real::Class::Finite, value < 0, exponent - 60, mantissa}, format,
                Rounding::Nearest);
}

std::vector<u64> floatEdges(const Format& format) {
  const u64 sign = format.sign(), infinity = format.infinity(), one = format.one(),
            normal = u64{1} << (format.precision - 1);
  std::vector<u64> edges{0,
                         sign,
                         one,
                         one | sign,
                         infinity,
                         infinity | sign,
                         infinity | normal >> 1 | 3,
                         infinity - 1,
                         1,
                         sign | 1,
                         normal,
                         normal - 1,
                         one + 1,
                         one - 1,
                         (infinity - 1) | sign,
                         nearest(0.5, format),
                         nearest(3, format),
                         infinity | 1,
                         sign | infinity | normal >> 1 | 5,
                         sign | (normal - 1),
                         sign | normal,
                         normal + 1,
                         (sign - 1),
                         2,
                         3,
                         normal << 1};
  for (const double number : kNumbers) edges.push_back(nearest(number, format));
  return edges;
}

std::vector<u64> pairEdges(const std::vector<u64>& halves) {
  std::vector<u64> edges;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    edges.push_back(cut(halves[i], 16) | cut(halves[(i * 7 + 3) % halves.size()], 16) << 16);
  }
  return edges;
}

std::vector<u64> edgesOf(Kind kind) {
  switch (kind) {
    case Kind::Pred:
    case Kind::Bit: return {0, 1};
    case Kind::Int16:
    case Kind::Byte16: return integerEdges(16);
    case Kind::Int64: return integerEdges(64);
    case Kind::Amount: return amountEdges();
    case Kind::Pair16: return pairEdges(integerEdges(16));
    case Kind::Quad8:
      return {0,          0xffffffff, 0x80808080, 0x7f7f7f7f, 0x807f01ff, 0xff80007f,
              0x01020304, 0xfefdfcfb, 0x80ff7f00, 0x12345678, 0x9abcdef0, 0x00ff00ff,
              0xff00ff00, 0x7f80807f, 0x01ff01ff, 0x40c0c040};
    case Kind::F16: return floatEdges(kF16);
    case Kind::BF16: return floatEdges(kBF16);
    case Kind::F16x2: return pairEdges(floatEdges(kF16));
    case Kind::BF16x2: return pairEdges(floatEdges(kBF16));
    case Kind::F32: return floatEdges(kF32);
    case Kind::F64: return floatEdges(kF64);
    case Kind::Int32: break;
  }
  return integerEdges(32);
}

const Format* formatOf(Kind kind) {
  static constexpr Format kFormats[] = {kF16, kBF16, kF32, kF64};
  switch (kind) {
    case Kind::F16:
    case Kind::F16x2: return &kFormats[0];
    case Kind::BF16:
    case Kind::BF16x2: return &kFormats[1];
    case Kind::F32: return &kFormats[2];
    case Kind::F64: return &kFormats[3];
    default: return nullptr;
  }
}

/// A number whose exponent is near that of one, so that sums and products of two meet.
u64 nearOne(Random& random, const Format& format) {
  const u64 normal = u64{1} << (format.precision - 1),
            spread = std::min<u64>(2 * format.precision, u64{1} << (format.exponentBits - 2));
  const u64 exponent = format.one() / normal + random.below(spread) - spread / 2;
  return exponent * normal + random.below(normal) + (random.below(2) ? format.sign() : 0);
}

u64 randomOf(Random& random, Kind kind, const std::vector<u64>& edges) {
  const u64 choice = random.below(4), bits = random.next();
  if (choice == 0 || edges.size() == 2) return edges[bits % edges.size()];
  if (kind == Kind::Amount && choice < 3) return bits % 80;
  const Format* format = formatOf(kind);
  if (format == nullptr || choice == 1) return choice == 2 ? bits >> random.below(64) : bits;
  u64 value = nearOne(random, *format);
  return registerBits(kind) > format->bits() ? value | nearOne(random, *format) << 16 : value;
}

/// Makes the last operand almost cancel what the others give: -b for two, -(a * b) for three.
void cancel(Random& random, Sources& s, const Format& format, std::size_t count) {
  const Real a = decode(low(s[0], format), format), b = decode(low(s[1], format), format);
  if (a.kind != Real::Class::Finite || b.kind != Real::Class::Finite) return;
  const Real other = count == 3 ? product(a, b) : a;
  s[count - 1] = (encode(other, format, Rounding::Zero) ^ format.sign()) + random.below(5) - 2;
}

u64 seedOf(const std::vector<Kind>& kinds) {
  u64 seed = 7;
  for (const Kind kind : kinds) seed = seed * 31 + static_cast<u64>(kind);
  return seed;
}

}  // namespace

std::vector<Sources> sourcesFor(const std::vector<Kind>& kinds) {
  std::vector<Sources> all;
  if (kinds.empty()) return std::vector<Sources>(kStep);
  if (kinds.size() == 1 && registerBits(kinds[0]) == 16) {
    for (u64 value = 0; value < 65536; ++value) all.push_back({value});
    return all;
  }
  std::vector<std::vector<u64>> edges;
  std::size_t binary = 0;
  for (const Kind kind : kinds) {
    edges.push_back(edgesOf(kind));
    binary += edges.back().size() == 2;
  }
  const double budget = static_cast<double>(kCombinations >> binary),
               wide = std::max<double>(1, static_cast<double>(kinds.size() - binary));
  const auto most = static_cast<std::size_t>(std::pow(budget, 1 / wide) + 1e-6);
  for (auto& list : edges) list.resize(std::min(list.size(), std::max<std::size_t>(most, 2)));
  std::array<std::size_t, 4> at{};
  for (bool more = true; more;) {
    Sources& s = all.emplace_back();
    for (std::size_t i = 0; i < kinds.size(); ++i) s[i] = edges[i][at[i]];
    more = false;
    for (std::size_t i = 0; i < kinds.size() && !more; ++i) {
      at[i] = (at[i] + 1) % edges[i].size();
      more = at[i] != 0;
    }
  }
  Random random(seedOf(kinds));
  std::vector<std::vector<u64>> whole;
  for (const Kind kind : kinds) whole.push_back(edgesOf(kind));
  const Format* format =
      kinds.size() > 1 && kinds.front() == kinds.back() ? formatOf(kinds[0]) : nullptr;
  for (std::size_t n = 0; n < kRandom || all.size() % kStep; ++n) {
    Sources& s = all.emplace_back();
    for (std::size_t i = 0; i < kinds.size(); ++i) s[i] = randomOf(random, kinds[i], whole[i]);
    if (format && registerBits(kinds[0]) == format->bits() && n % 4 == 0)
      cancel(random, s, *format, kinds.size());
  }
  return all;
}

}  // namespace instructions
