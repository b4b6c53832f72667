// ld and st in every state space and width.
#include <algorithm>

#include "native/simulator/test/instructions/kernel.h"
#include "native/simulator/test/instructions/memory_shared.h"

namespace instructions {
namespace {

std::vector<Place> writablePlaces() {
  static const std::string sharedGeneric = std::string(kShared) + "cvta.shared.u64 %a, %a;";
  static const std::string localGeneric = std::string(kLocal) + "cvta.local.u64 %a, %a;";
  static const std::string globalGeneric = std::string(kGlobal) + "cvta.global.u64 %a, %a;";
  return {{".global", kGlobal},      {".shared", kShared},        {".shared::cta", kShared},
          {".local", kLocal},        {"", globalGeneric.c_str()}, {"", sharedGeneric.c_str()},
          {"", localGeneric.c_str()}};
}

/// "{%d0, %v1}" or "%d0".
std::string vectorOf(const std::vector<std::string>& registers) {
  if (registers.size() == 1) return registers[0];
  std::string text = "{";
  for (const std::string& each : registers) text += (text.size() > 1 ? ", " : "") + each;
  return text + "}";
}

std::string scratchRegister(unsigned bits, unsigned index) {
  return (bits == 64 ? "%x" : bits == 32 ? "%y" : "%h") + std::to_string(index);
}

/// Writes 16 bytes as two words and reads element `count - 1` and element 0 of a vector that begins
/// `offset` bytes in.
void addLoad(Forms& forms, const Place& place, const std::string& words, const std::string& type,
             unsigned count, unsigned registerWidth) {
  const unsigned bits = bitsOf(type), offset = count * bits >= 128 ? 0 : bits / 8 * count;
  const bool negative = type[0] == 's';
  const std::string space = place.space, vector = count == 1 ? "" : ".v" + std::to_string(count);
  const std::string name = "ld" + words + space + vector + "." + type;
  std::vector<std::string> registers{"%d0"};
  for (unsigned i = 1; i + 1 < count; ++i) registers.push_back(scratchRegister(registerWidth, i));
  if (count > 1) registers.push_back("%d1");
  const std::string body = std::string(place.setup) + "st" + space + ".b64 [%a], %s0; st" + space +
                           ".b64 [%a+8], %s1;" + name + " " + vectorOf(registers) + ", [%a+" +
                           std::to_string(offset) + "];";
  const auto reference = [=](const u64* s, u64* d) {
    const u128 memory = static_cast<u128>(s[1]) << 64 | s[0];
    const Integer integer{bits, negative};
    d[0] = cut(static_cast<u128>(numberIn(static_cast<u64>(memory >> (8 * offset)), integer)),
               registerWidth);
    const u64 last = static_cast<u64>(memory >> (8 * offset + bits * (count - 1)));
    d[1] = cut(static_cast<u128>(numberIn(last, integer)), registerWidth);
  };
  const Kind kind = kindOf(Integer{registerWidth, false});
  const std::vector<Kind> results(count > 1 ? 2 : 1, kind);
  forms.push_back({name,
                   results,
                   {Kind::Int64, Kind::Int64},
                   body,
                   reference,
                   {},
                   std::to_string(registerWidth) + " bits"});
}

/// Fills 16 bytes, overwrites a part of them, and reads all.
void addStore(Forms& forms, const Place& place, const std::string& words, const std::string& type,
              unsigned count, unsigned registerWidth) {
  const unsigned bits = bitsOf(type), offset = count * bits >= 128 ? 0 : bits / 8 * count;
  const std::string space = place.space, vector = count == 1 ? "" : ".v" + std::to_string(count);
  const std::string name = "st" + words + space + vector + "." + type;
  std::vector<std::string> registers;
  for (unsigned i = 0; i < count; ++i) registers.push_back(i % 2 ? "%s1" : "%s0");
  const std::string body = std::string(place.setup) + "mov.b64 %x0, 0x1122334455667788; st" +
                           space + ".b64 [%a], %x0; st" + space + ".b64 [%a+8], %x0;" + name +
                           " [%a+" + std::to_string(offset) + "], " + vectorOf(registers) + "; ld" +
                           space + ".b64 %d0, [%a]; ld" + space + ".b64 %d1, [%a+8];";
  const auto reference = [=](const u64* s, u64* d) {
    constexpr u64 kFill = 0x1122334455667788;
    u128 memory = static_cast<u128>(kFill) << 64 | kFill;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned at = 8 * offset + bits * i;
      memory &= ~(static_cast<u128>(cut(~u64{0}, bits)) << at);
      memory |= static_cast<u128>(cut(s[i % 2], bits)) << at;
    }
    d[0] = static_cast<u64>(memory);
    d[1] = static_cast<u64>(memory >> 64);
  };
  const Kind kind = kindOf(Integer{registerWidth, false});
  forms.push_back({name,
                   {Kind::Int64, Kind::Int64},
                   {kind, kind},
                   body,
                   reference,
                   {},
                   std::to_string(registerWidth) + " bits"});
}

void accesses(Forms& forms) {
  for (const Place& place : writablePlaces()) {
    for (const std::string type : kTypes) {
      const unsigned bits = bitsOf(type);
      for (unsigned count = 1; count <= 4 && count * bits <= 128; count *= 2) {
        for (unsigned width = std::max(bits, 16u); width <= 64; width *= 2) {
          if (width > bits && type[0] == 'f') break;
          addLoad(forms, place, "", type, count, width);
          addStore(forms, place, "", type, count, width);
        }
      }
    }
  }
  const Place global{".global", kGlobal}, shared{".shared", kShared}, generic{"", kGlobal};
  for (const Place& place : {global, shared, generic}) {
    for (const char* words : {".volatile", ".relaxed.cta", ".relaxed.cluster", ".relaxed.gpu",
                              ".relaxed.sys", ".weak"}) {
      for (const unsigned count : {1u, 2u}) {
        addLoad(forms, place, words, "u32", count, 32);
        addStore(forms, place, words, "u32", count, 32);
      }
    }
    for (const char* scope : {".cta", ".cluster", ".gpu", ".sys"}) {
      addLoad(forms, place, std::string(".acquire") + scope, "u32", 1, 32);
      addStore(forms, place, std::string(".release") + scope, "u32", 1, 32);
    }
  }
  for (const char* words : {".ca", ".cg", ".cs", ".lu", ".cv"})
    addLoad(forms, {".global", kGlobal}, words, "u32", 1, 32);
  for (const char* words : {".wb", ".cg", ".cs", ".wt"})
    addStore(forms, {".global", kGlobal}, words, "u32", 1, 32);
}

void parameters(Forms& forms) {
  for (const std::string type : kTypes) {
    const unsigned bits = bitsOf(type), offset = bits == 64 ? 0 : bits / 8;
    for (unsigned width = std::max(bits, 16u); width <= 64; width *= 2) {
      if (width > bits && type[0] == 'f') break;
      const std::string name = "ld.param." + type;
      const auto reference = [=](const u64*, u64* d) {
        d[0] = cut(static_cast<u128>(numberIn(kNumber >> (8 * offset), {bits, type[0] == 's'})),
                   width);
      };
      forms.push_back({name,
                       {kindOf(Integer{width, false})},
                       {},
                       name + " %d0, [number+" + std::to_string(offset) + "];",
                       reference,
                       {},
                       std::to_string(width) + " bits"});
    }
  }
}

}  // namespace

void memoryForms(Forms& forms) {
  accesses(forms);
  parameters(forms);
}

}  // namespace instructions
