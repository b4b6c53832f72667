#include "interposer/trace/arguments.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

namespace interposer::trace {

namespace {

/// Longer arrays and texts are cut.
constexpr std::size_t kMostElements = 8;
constexpr std::size_t kMostCharacters = 128;
/// Structures within structures, so deep.
constexpr int kMostDepth = 6;

/// The program may have passed any address, so the kernel reads it. Returns the bytes read.
std::size_t readMemory(std::uint64_t address, void* to, std::size_t bytes) {
  const iovec local{to, bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};
  const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

class Describer {
 public:
  Describer(bool succeeded, const NameOf& nameOf) : succeeded_(succeeded), nameOf_(nameOf) {}

  /// The value of this type in `bytes`. `elements`: how many lie behind a pointer.
  std::string describe(const Type& type, const std::byte* bytes, std::size_t elements,
                       int depth = 0) const {
    std::uint64_t word = 0;
    if (type.bytes <= sizeof word) std::memcpy(&word, bytes, type.bytes);
    switch (type.kind) {
      case Kind::integer: return print("%lld", signedOf(word, type.bytes));
      case Kind::natural: return print("%llu", static_cast<unsigned long long>(word));
      case Kind::real: return print("%g", realOf(bytes, type.bytes));
      case Kind::address: return describeAddress(word);
      case Kind::handle: return describeHandle(type, word);
      case Kind::text: return describeText(type, word);
      case Kind::enumeration: return describeEnumeration(type, word);
      case Kind::pointer: return describePointer(type, word, elements, depth);
      case Kind::structure: return describeStructure(type, bytes, depth);
      case Kind::opaque: return "...";
    }
    return {};
  }

 private:
  static long long signedOf(std::uint64_t word, std::size_t bytes) {
    const auto shift = static_cast<unsigned>(64 - 8 * bytes);
    return static_cast<long long>(word << shift) >> shift;
  }

  static double realOf(const std::byte* bytes, std::size_t size) {
    double value = 0;
    float single = 0;
    if (size == sizeof value) return std::memcpy(&value, bytes, size), value;
    return std::memcpy(&single, bytes, sizeof single), single;
  }

  static std::string describeAddress(std::uint64_t word) {
    return word == 0 ? "NULL" : print("0x%llx", static_cast<unsigned long long>(word));
  }

  std::string describeHandle(const Type& type, std::uint64_t handle) const {
    const std::string name = handle == 0 ? "" : nameOf_(type.handle, handle);
    return name.empty() ? describeAddress(handle) : describeAddress(handle) + " " + name;
  }

  std::string describeText(const Type& type, std::uint64_t address) const {
    char text[kMostCharacters + 1];
    if (address == 0 || (type.count == 0 && !succeeded_)) return describeAddress(address);
    const std::size_t got = readText(address, text);
    return got == 0 ? describeAddress(address) : '"' + std::string(text) + '"';
  }

  /// Reads up to the end of a page at a time, because the next one may not be there.
  static std::size_t readText(std::uint64_t address, char (&text)[kMostCharacters + 1]) {
    constexpr std::uint64_t kPage = 4096;
    std::size_t got = 0;
    while (got < kMostCharacters) {
      const std::uint64_t at = address + got;
      const std::size_t wanted = std::min<std::size_t>(kPage - at % kPage, kMostCharacters - got);
      const std::size_t more = readMemory(at, text + got, wanted);
      got += more;
      text[got] = 0;
      if (more < wanted || std::memchr(text, 0, got) != nullptr) break;
    }
    return got;
  }

  static std::string describeEnumeration(const Type& type, std::uint64_t word) {
    const auto value = static_cast<std::int32_t>(word);
    const std::span values(kEnumValues + type.first, type.count);
    const auto found = std::ranges::find(values, value, &EnumValue::value);
    return found != values.end() ? std::string(textAt(found->name)) : print("%d", value);
  }

  /// `[value]`, or `[first, second, ...]`.
  std::string describePointer(const Type& type, std::uint64_t address, std::size_t elements,
                              int depth) const {
    const Type& target = kTypes[type.first];
    if (address == 0 || depth >= kMostDepth || target.bytes == 0 ||
        (type.count == 0 && !succeeded_))
      return describeAddress(address);
    const std::size_t shown = std::min(elements, kMostElements);
    std::vector<std::byte> bytes(shown * target.bytes);
    if (readMemory(address, bytes.data(), bytes.size()) != bytes.size())
      return describeAddress(address);
    return describeElements(target, bytes.data(), shown, elements, depth);
  }

  std::string describeElements(const Type& type, const std::byte* bytes, std::size_t shown,
                               std::size_t elements, int depth) const {
    std::string text = "[";
    for (std::size_t i = 0; i < shown; ++i)
      text += (i == 0 ? "" : ", ") + describe(type, bytes + i * type.bytes, 1, depth + 1);
    return text + (shown < elements ? ", ...]" : "]");
  }

  /// `{field=value, ...}`.
  std::string describeStructure(const Type& type, const std::byte* bytes, int depth) const {
    std::string text = "{";
    for (const Field& field : std::span(kFields + type.first, type.count)) {
      if (text.size() > 1) text += ", ";
      text.append(textAt(field.name)).append("=").append(describeField(field, bytes, depth));
    }
    return text + "}";
  }

  std::string describeField(const Field& field, const std::byte* bytes, int depth) const {
    const Type& type = kTypes[field.type];
    if (field.elements == 1) return describe(type, bytes + field.offset, 1, depth + 1);
    const std::size_t shown = std::min<std::size_t>(field.elements, kMostElements);
    return describeElements(type, bytes + field.offset, shown, field.elements, depth);
  }

  const bool succeeded_;
  const NameOf& nameOf_;
};

/// How many elements lie behind a pointer. The parameter with their number may be a pointer itself.
std::size_t elementsOf(const CallFacts& call, const Parameter& parameter,
                       const std::uint64_t* arguments) {
  if (parameter.length < 0) return 1;
  const Type& type = kTypes[kParameters[call.firstParameter + parameter.length].type];
  return type.kind == Kind::pointer ? 1 : arguments[parameter.length];
}

}  // namespace

std::vector<Argument> describeArguments(const CallFacts& call, const std::uint64_t* arguments,
                                        bool succeeded, const NameOf& nameOf) {
  const Describer describer(succeeded, nameOf);
  std::vector<Argument> described;
  for (std::size_t i = 0; i < call.parameters; ++i) {
    const Parameter& parameter = kParameters[call.firstParameter + i];
    const Type& type = kTypes[parameter.type];
    const void* at = &arguments[i];
    if (type.bytes > sizeof *arguments) at = reinterpret_cast<const void*>(arguments[i]);
    described.push_back(
        {textAt(parameter.name), describer.describe(type, static_cast<const std::byte*>(at),
                                                    elementsOf(call, parameter, arguments))});
  }
  return described;
}

}  // namespace interposer::trace
