// mma of every shape and type, ldmatrix, stmatrix, movmatrix.
//
// The order in which hardware adds up is open, so the operands are such that every sum is exact:
// real numbers are 1 to 1.875 in eighths, with a sign.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "native/simulator/test/instructions/memory_shared.h"

namespace instructions {
namespace {

constexpr std::uint32_t kAll = 0xffffffff, kMix = 0x9e3779b9;
constexpr u64 kWideMix = 0x9e3779b97f4a7c15;

enum class Number : std::uint8_t { Real, Signed, Unsigned, Bits };

struct Element {
  std::string name;
  unsigned bits;
  Number number;
  unsigned fraction = 0;  ///< bits of the fraction
  u64 one = 0;            ///< of a real number, repeated over the register
  u64 varied = 0;         ///< the bits of it that differ from register to register
  u64 variedLittle = 0;   ///< for sums in f16
};

const Element kElements[] = {
    {"f16", 16, Number::Real, 10, 0x3c003c00, 0x83808380, 0x82008200},
    {"bf16", 16, Number::Real, 7, 0x3f803f80, 0x80708070, 0},
    {"tf32", 32, Number::Real, 23, 0x3f800000, 0x80700000, 0},
    {"f32", 32, Number::Real, 23, 0x3f800000, 0x80700000, 0},
    {"f64", 64, Number::Real, 52, 0x3ff0000000000000, 0x800e000000000000, 0},
    {"e4m3", 8, Number::Real, 3, 0x38383838, 0x87878787, 0x84848484},
    {"e5m2", 8, Number::Real, 2, 0x3c3c3c3c, 0x83838383, 0x82828282},
    {"s8", 8, Number::Signed},
    {"u8", 8, Number::Unsigned},
    {"s4", 4, Number::Signed},
    {"u4", 4, Number::Unsigned},
    {"s32", 32, Number::Signed},
    {"b1", 1, Number::Bits},
};

const Element& elementNamed(const std::string& name) {
  for (const Element& element : kElements) {
    if (element.name == name) return element;
  }
  std::abort();
}

struct Product {
  std::string name;
  unsigned m, n, k;
  Element a, b, c, d;
  bool columnA = false, columnB = true;
  bool quads() const { return k == 4 && a.bits == 16; }
  bool little() const { return d.name == "f16"; }
};

enum class Operand : std::uint8_t { A, B, C };

unsigned registerBitsOf(const Element& element) { return element.bits == 64 ? 64 : 32; }

/// The bits of register r of an operand, and the PTX that computes them.
u64 registerOf(const Product& product, Operand operand, unsigned r, const u64* s) {
  const Element& element = operand == Operand::A   ? product.a
                           : operand == Operand::B ? product.b
                                                   : product.c;
  u64 raw = 0;
  if (element.bits == 64) {
    const unsigned source = operand == Operand::A ? r % 2 : operand == Operand::B ? 2 : 3;
    raw = s[source] ^ kWideMix * r;
  } else {
    const unsigned source = operand == Operand::A ? r / 2 : operand == Operand::B ? 2 : 3;
    raw = cut(s[source] >> (r % 2 * 32), 32) ^ cut(operand == Operand::C ? kMix * (r / 2) : 0, 32);
  }
  if (element.number != Number::Real) return raw;
  const u64 varied = product.little() ? element.variedLittle : element.varied;
  return (raw & varied) | element.one;
}

std::string registerText(const Product& product, Operand operand, unsigned r) {
  const char letter = operand == Operand::A ? 'a' : operand == Operand::B ? 'b' : 'c';
  const Element& element = operand == Operand::A   ? product.a
                           : operand == Operand::B ? product.b
                                                   : product.c;
  const bool wide = element.bits == 64;
  const std::string type = wide ? ".b64 " : ".b32 ",
                    to = std::string("%m") + letter + std::to_string(r), again = to + ", " + to;
  const unsigned source = operand == Operand::B   ? 2
                          : operand == Operand::C ? 3
                          : wide                  ? r % 2
                                                  : r / 2;
  const std::string from = "%s" + std::to_string(source);
  std::string text = ".reg " + type + to + ";";
  if (wide)
    text += "xor.b64 " + to + ", " + from + ", " + std::to_string(kWideMix * r) + ";";
  else
    text += "mov.b64 {%t0, %t1}, " + from + "; xor.b32 " + to + ", %t" + std::to_string(r % 2) +
            ", " + std::to_string(operand == Operand::C ? kMix * (r / 2) : 0) + ";";
  if (element.number != Number::Real) return text;
  const u64 varied = product.little() ? element.variedLittle : element.varied;
  return text + "and" + type + again + ", " + std::to_string(varied) + "; or" + type + again +
         ", " + std::to_string(element.one) + ";";
}

/// The number that `bits` spell; real ones in eighths.
i128 numberOf(const Element& element, u64 bits) {
  if (element.number == Number::Signed)
    return numberIn(bits << (64 - element.bits), {64, true}) >> (64 - element.bits);
  if (element.number != Number::Real) return static_cast<i128>(cut(bits, element.bits));
  const u64 fraction = cut(bits, element.fraction);
  const auto size = static_cast<i128>(8 + (fraction * 8 >> element.fraction));
  return bits >> (element.bits - 1) & 1 ? -size : size;
}

struct At {
  unsigned row, column;
};

/// The tables of the PTX manual: where element i of a lane belongs.
At placeInA(const Product& p, unsigned lane, unsigned i) {
  const unsigned group = lane >> 2, member = lane % 4, bits = p.a.bits;
  if (p.quads()) {
    const unsigned first = 8 * (lane / 4 % 4);
    if (p.columnA) return {first + i % 4 + (lane < 16 ? 0 : 4), lane % 4};
    return {first + lane % 4 + (lane < 16 ? 0 : 4), i};
  }
  if (p.m == 8) return {group, member * (p.k / 4) + i};
  if (p.k == 4) return {i == 0 ? group : group + 8, member};
  if (bits == 64 && p.k == 16)
    return {i % 2 == 0 ? group : group + 8, (i % 2 == 0 ? i * 2 : i * 2 - 2) + member};
  if (bits >= 32) return {i % 2 == 0 ? group : group + 8, i < 2 ? member : member + 4};
  const unsigned run = 32 / bits;  // elements of a register
  const bool upper = (i >= run && i < 2 * run) || i >= 3 * run;
  return {upper ? group + 8 : group, member * run + i % run + (i >= 2 * run ? 4 * run : 0)};
}

At placeInB(const Product& p, unsigned lane, unsigned i) {
  const unsigned group = lane >> 2, member = lane % 4, bits = p.b.bits;
  if (p.quads()) {
    const unsigned first = 8 * (lane / 4 % 4);
    if (p.columnB) return {i, first + lane % 4 + (lane < 16 ? 0 : 4)};
    return {lane % 4, first + i + (lane < 16 ? 0 : 4)};
  }
  if (bits >= 32) return {member + 4 * i, group};
  const unsigned run = 32 / bits;
  return {member * run + i % run + (i >= run ? 4 * run : 0), group};
}

At placeInC(const Product& p, const Element& element, unsigned lane, unsigned i) {
  const unsigned group = lane >> 2, member = lane % 4;
  if (!p.quads()) return {i < 2 ? group : group + 8, member * 2 + (i & 1)};
  const unsigned first = 8 * (lane / 4 % 4), upper = lane < 16 ? 0 : 4;
  if (element.bits == 16) return {first + lane % 4 + upper, i};
  return {first + (lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)};
}

unsigned registersOf(const Product& p, const Element& element, unsigned rows, unsigned columns) {
  return rows * columns * (p.quads() ? 4 : 1) * element.bits / 32 / registerBitsOf(element);
}

struct Matrix {
  unsigned columns;
  std::vector<i128> values;
  i128& at(At place) { return values[place.row * columns + place.column]; }
};

template <class F>
void fill(const Product& p, Operand operand, const Element& element, unsigned registers,
          const u64 (*s)[4], Matrix& matrix, F place) {
  const unsigned inOne = registerBitsOf(element) / element.bits;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < registers * inOne; ++i) {
      const u64 bits = registerOf(p, operand, i / inOne, s[lane]);
      matrix.at(place(lane, i)) =
          numberOf(element, cut(bits >> (i % inOne * element.bits), element.bits));
    }
  }
}

/// The bits of a result; real ones are in 64ths.
u64 resultBits(const Product& p, i128 value) {
  if (p.d.number == Number::Real) {
    if (value == 0 && p.name.find(".rm.") != std::string::npos) return formatNamed(p.d.name).sign();
    Real exact = realOf(value);
    exact.exponent -= 6;
    return encode(exact, formatNamed(p.d.name), Rounding::Nearest);
  }
  const bool saturates = p.name.find("satfinite") != std::string::npos;
  return cut(static_cast<u128>(saturates ? clampTo(value, {32, true}) : value), 32);
}

/// All elements of d, by lane.
std::vector<std::vector<u64>> multiplied(const Product& p, const u64 (*s)[4]) {
  const unsigned groups = p.quads() ? 4 : 1;
  Matrix a{p.k, std::vector<i128>(groups * p.m * p.k)},
      b{groups * p.n, std::vector<i128>(p.k * groups * p.n)},
      c{p.n, std::vector<i128>(groups * p.m * p.n)};
  fill(p, Operand::A, p.a, registersOf(p, p.a, p.m, p.k), s, a,
       [&](unsigned lane, unsigned i) { return placeInA(p, lane, i); });
  fill(p, Operand::B, p.b, registersOf(p, p.b, p.k, p.n), s, b,
       [&](unsigned lane, unsigned i) { return placeInB(p, lane, i); });
  fill(p, Operand::C, p.c, registersOf(p, p.c, p.m, p.n), s, c,
       [&](unsigned lane, unsigned i) { return placeInC(p, p.c, lane, i); });
  const bool real = p.d.number == Number::Real, both = p.name.find("and.popc") != std::string::npos;
  std::vector<std::vector<u64>> result(32);
  const unsigned elements = groups * p.m * p.n / 32;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < elements; ++i) {
      const At at = placeInC(p, p.d, lane, i);
      i128 sum = c.at(at) * (real ? 8 : 1);
      for (unsigned k = 0; k < p.k; ++k) {
        const i128 x = a.at({at.row, k});
        const i128 y = b.at({k, at.column + (p.quads() ? at.row / 8 * 8 : 0)});
        sum += p.a.number != Number::Bits ? x * y : both ? (x & y) : (x ^ y);
      }
      result[lane].push_back(resultBits(p, sum));
    }
  }
  return result;
}

std::string listOf(const char* letter, unsigned registers) {
  std::string text = "{";
  for (unsigned i = 0; i < registers; ++i)
    text += (i ? ", %m" : "%m") + std::string(letter) + std::to_string(i);
  return text + "}";
}

/// One form for every 128 bits of a lane's result.
void add(Forms& forms, const Product& p) {
  const unsigned inA = registersOf(p, p.a, p.m, p.k), inB = registersOf(p, p.b, p.k, p.n),
                 inC = registersOf(p, p.c, p.m, p.n), inD = registersOf(p, p.d, p.m, p.n);
  std::string body;
  for (unsigned r = 0; r < inA; ++r) body += registerText(p, Operand::A, r);
  for (unsigned r = 0; r < inB; ++r) body += registerText(p, Operand::B, r);
  for (unsigned r = 0; r < inC; ++r) body += registerText(p, Operand::C, r);
  const bool wide = p.d.bits == 64;
  for (unsigned r = 0; r < inD; ++r)
    body += std::string(wide ? ".reg .b64 %md" : ".reg .b32 %md") + std::to_string(r) + ";";
  body += p.name + " " + listOf("d", inD) + ", " + listOf("a", inA) + ", " + listOf("b", inB) +
          ", " + listOf("c", inC) + ";";
  const unsigned inWord = wide ? 1 : 2, words = inD / inWord, elements = 64 / p.d.bits;
  for (unsigned first = 0; first < words; first += 2) {
    std::string stores;
    const unsigned count = std::min(2u, words - first);
    for (unsigned word = 0; word < count; ++word) {
      const unsigned r = (first + word) * inWord;
      stores += "mov.b64 %d" + std::to_string(word) + ", " +
                (wide ? "%md" + std::to_string(r)
                      : "{%md" + std::to_string(r) + ", %md" + std::to_string(r + 1) + "}") +
                ";";
    }
    const auto reference = [=](const u64(*s)[4], u64(*d)[2]) {
      const auto all = multiplied(p, s);
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned word = 0; word < count; ++word) {
          for (unsigned e = 0; e < elements; ++e)
            d[lane][word] |= all[lane][(first + word) * elements + e] << (e * p.d.bits % 64);
        }
      }
      return kAll;
    };
    forms.push_back({p.name,
                     std::vector<Kind>(count, Kind::Int64),
                     std::vector<Kind>(4, Kind::Int64),
                     body + stores,
                     {},
                     {},
                     "words from " + std::to_string(first),
                     reference});
  }
}

void addAll(Forms& forms, const std::string& pattern) {
  for (const std::string& name : expand(pattern)) {
    const Words words(name);
    Product p{.name = name};
    std::sscanf(words[3].c_str(), "m%un%uk%u", &p.m, &p.n, &p.k);
    std::size_t at = 6;
    if (words[at] == "satfinite" || words[at].starts_with("r")) ++at;
    p.columnA = words[4] == "col";
    p.columnB = words[5] == "col";
    p.d = elementNamed(words[at]);
    p.a = elementNamed(words[at + 1]);
    p.b = elementNamed(words[at + 2]);
    p.c = elementNamed(words[at + 3]);
    add(forms, p);
  }
}

void products(Forms& forms) {
  const std::string start = "mma.sync.aligned.";
  addAll(forms, start +
                    "m8n8k4.(row|col).(row|col).(f16.f16.f16.f16|f32.f16.f16.f16|"
                    "f32.f16.f16.f32)");
  addAll(forms, start +
                    "(m16n8k8|m16n8k16).row.col.(f16.f16.f16.f16|f32.f16.f16.f32|"
                    "f32.bf16.bf16.f32)");
  addAll(forms, start + "(m16n8k4|m16n8k8).row.col.f32.tf32.tf32.f32");
  addAll(forms, start +
                    "(m8n8k4|m16n8k4|m16n8k8|m16n8k16).row.col(|.rn|.rz|.rm|.rp)"
                    ".f64.f64.f64.f64");
  addAll(forms, start + "(m8n8k16|m16n8k16|m16n8k32).row.col(|.satfinite).s32.(s8|u8).(s8|u8).s32");
  addAll(forms, start + "(m8n8k32|m16n8k32|m16n8k64).row.col(|.satfinite).s32.(s4|u4).(s4|u4).s32");
  addAll(forms, start + "(m8n8k128|m16n8k128|m16n8k256).row.col.s32.b1.b1.s32.(xor|and).popc");
  addAll(forms, start + "(m16n8k16|m16n8k32).row.col.f32.(e4m3|e5m2).(e4m3|e5m2).f32");
  addAll(forms, start + "(m16n8k16|m16n8k32).row.col.f16.(e4m3|e5m2).(e4m3|e5m2).f16");
}

// Each lane has a row of 16 bytes, two of 8 halves side by side in %s0 and %s1. Lane i names the
// row of lane i ^ 5.
constexpr unsigned kSwap = 5;

unsigned halfOf(const u64 (*s)[4], unsigned row, unsigned column) {
  return static_cast<unsigned>(cut(s[row ^ kSwap][column / 4] >> (16 * (column % 4)), 16));
}

/// Element e of a lane's register for matrix j: its row among all rows, and its column.
At placeInRows(bool transposed, unsigned matrix, unsigned lane, unsigned e) {
  const unsigned line = lane / 4, place = 2 * (lane % 4) + e;
  return transposed ? At{8 * matrix + place, line} : At{8 * matrix + line, place};
}

std::string namedRows(unsigned count, bool generic) {
  // Only the lanes of the matrices have to name a row.
  std::string text =
      "mov.u32 %t0, %tid.x; xor.b32 %t0, %t0, 5; mul.lo.u32 %t0, %t0, 32; mov.u32 %a32, scratch; "
      "add.u32 %a32, %a32, %t0; mov.u32 %t1, %laneid; setp.lt.u32 %p, %t1, " +
      std::to_string(8 * count) + "; selp.b32 %a32, %a32, -16, %p;";
  if (generic) text += "cvt.u64.u32 %a, %a32; cvta.shared.u64 %a, %a;";
  return text + "bar.warp.sync 0xffffffff;";
}

void rowLoads(Forms& forms) {
  for (const std::string& name :
       expand("ldmatrix.sync.aligned.m8n8.(x1|x2|x4)(|.trans)(|.shared|.shared::cta).b16")) {
    const Words words(name);
    const auto count = static_cast<unsigned>(words[4][1] - '0');
    const bool generic = name.find("shared") == std::string::npos, transposed = words.has("trans");
    std::string body = std::string(kShared) +
                       "st.shared.b64 [%a], %s0; st.shared.b64 [%a+8], %s1;" +
                       namedRows(count, generic);
    for (unsigned i = 0; i < 4; ++i)
      body += ".reg .b32 %md" + std::to_string(i) + "; mov.b32 %md" + std::to_string(i) + ", 0;";
    body += name + " " + listOf("d", count) + (generic ? ", [%a];" : ", [%a32];") +
            "mov.b64 %d0, {%md0, %md1}; mov.b64 %d1, {%md2, %md3};";
    const auto reference = [=](const u64(*s)[4], u64(*d)[2]) {
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned e = 0; e < 2 * count; ++e) {
          const At at = placeInRows(transposed, e / 2, lane, e % 2);
          d[lane][e / 4] |= u64{halfOf(s, at.row, at.column)} << (16 * (e % 4));
        }
      }
      return kAll;
    };
    forms.push_back({name,
                     {Kind::Int64, Kind::Int64},
                     {Kind::Int64, Kind::Int64},
                     body,
                     {},
                     {},
                     {},
                     reference});
  }
}

void rowStores(Forms& forms) {
  for (const std::string& name :
       expand("stmatrix.sync.aligned.m8n8.(x1|x2|x4)(|.trans)(|.shared|.shared::cta).b16")) {
    const Words words(name);
    const auto count = static_cast<unsigned>(words[4][1] - '0');
    const bool generic = name.find("shared") == std::string::npos, transposed = words.has("trans");
    std::string body = std::string(kShared) +
                       "mov.b64 %x0, 0; st.shared.b64 [%a], %x0; st.shared.b64 [%a+8], %x0; "
                       "mov.b32 %y1, %a32;";
    for (unsigned i = 0; i < 4; ++i) body += ".reg .b32 %md" + std::to_string(i) + ";";
    body += "mov.b64 {%md0, %md1}, %s0; mov.b64 {%md2, %md3}, %s1;" + namedRows(count, generic) +
            name + (generic ? " [%a], " : " [%a32], ") + listOf("d", count) +
            "; bar.warp.sync 0xffffffff; ld.shared.b64 %d0, [%y1]; ld.shared.b64 %d1, [%y1+8];";
    const auto reference = [=](const u64(*s)[4], u64(*d)[2]) {
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned e = 0; e < 2 * count; ++e) {
          const At at = placeInRows(transposed, e / 2, lane, e % 2);
          d[at.row ^ kSwap][at.column / 4] |= cut(s[lane][e / 4] >> (16 * (e % 4)), 16)
                                              << (16 * (at.column % 4));
        }
      }
      return kAll;
    };
    forms.push_back({name,
                     {Kind::Int64, Kind::Int64},
                     {Kind::Int64, Kind::Int64},
                     body,
                     {},
                     {},
                     {},
                     reference});
  }
}

void transposition(Forms& forms) {
  const std::string name = "movmatrix.sync.aligned.m8n8.trans.b16";
  const auto reference = [](const u64(*s)[4], u64(*d)[2]) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned e = 0; e < 2; ++e) {
        const unsigned row = 2 * (lane % 4) + e, column = lane / 4;
        d[lane][0] |= cut(s[4 * row + column / 2][0] >> (16 * (column % 2)), 16) << (16 * e);
      }
    }
    return kAll;
  };
  forms.push_back({name, {Kind::Int32}, {Kind::Int32}, name + " %d0, %s0;", {}, {}, {}, reference});
}

}  // namespace

void matrixForms(Forms& forms) {
  products(forms);
  rowLoads(forms);
  rowStores(forms);
  transposition(forms);
}

}  // namespace instructions
