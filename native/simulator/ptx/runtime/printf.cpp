// printf of the device: conversions as C has them, arguments from a buffer in which each takes 4 or
// 8 bytes, aligned.
#include <cstdio>
#include <cstring>
#include <string>

#include "native/simulator/ptx/machine/addresses.h"
#include "native/simulator/ptx/runtime/builtins.h"

namespace simulator::ptx {
namespace {

class Arguments {
 public:
  Arguments(Warp& warp, unsigned lane, std::uint64_t address)
      : warp_(warp), lane_(lane), at_(address) {}
  bool ok() const { return ok_; }
  int taken() const { return taken_; }
  template <class T>
  T next() {
    T value{};
    at_ = (at_ + sizeof(T) - 1) & ~std::uint64_t{sizeof(T) - 1};
    const void* found = hostAddress(warp_, lane_, at_, sizeof(T), Use::read);
    if (found) {
      std::memcpy(&value, found, sizeof value);
    } else {
      ok_ = false;
    }
    at_ += sizeof(T);
    ++taken_;
    return value;
  }

 private:
  Warp& warp_;
  unsigned lane_;
  std::uint64_t at_;
  bool ok_ = true;
  int taken_ = 0;
};

/// One conversion: flags, width and precision as text (stars replaced), length modifiers counted,
/// and the letter.
struct Conversion {
  std::string head = "%";
  bool wide = false;  ///< l, ll, j, z, t: 64 bits
  int shortness = 0;  ///< h, hh
  char letter = 0;
};

Conversion parseConversion(const std::string& format, std::size_t& at, Arguments& arguments) {
  Conversion result;
  for (++at; at < format.size() && std::strchr("-+ #0", format[at]); ++at)
    result.head += format[at];
  const auto number = [&] {
    if (at < format.size() && format[at] == '*') {
      result.head += std::to_string(arguments.next<int>());
      ++at;
    }
    for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
      result.head += format[at];
  };
  number();
  if (at < format.size() && format[at] == '.') {
    result.head += format[at++];
    number();
  }
  for (; at < format.size() && std::strchr("hlLjzt", format[at]); ++at) {
    result.wide |= format[at] != 'h' && format[at] != 'L';
    result.shortness += format[at] == 'h';
  }
  result.letter = at < format.size() ? format[at++] : '\0';
  return result;
}

template <class T>
void append(std::string& text, const std::string& conversion, T value) {
  char small[256];
  const int length = std::snprintf(small, sizeof small, conversion.c_str(), value);
  if (length < 0) return;
  if (static_cast<std::size_t>(length) < sizeof small) {
    text.append(small, static_cast<std::size_t>(length));
    return;
  }
  std::string large(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(large.data(), large.size(), conversion.c_str(), value);
  text.append(large, 0, static_cast<std::size_t>(length));
}

void integer(std::string& text, const Conversion& c, Arguments& arguments) {
  if (c.wide) {
    append(text, c.head + "ll" + c.letter, arguments.next<long long>());
  } else {
    append(text,
           c.head +
               (c.shortness == 1  ? "h"
                : c.shortness > 1 ? "hh"
                                  : "") +
               c.letter,
           arguments.next<int>());
  }
}

bool string(Warp& warp, unsigned lane, std::string& text, const Conversion& c,
            Arguments& arguments) {
  const auto address = arguments.next<std::uint64_t>();
  std::string value;
  if (address == 0) {
    value = "(null)";
  } else if (!readString(warp, lane, address, value)) {
    return false;
  }
  append(text, c.head + "s", value.c_str());
  return true;
}

bool convert(Warp& warp, unsigned lane, std::string& text, const Conversion& c,
             Arguments& arguments) {
  switch (c.letter) {
    case '%': text += '%'; return true;
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': integer(text, c, arguments); return true;
    case 'c': append(text, c.head + "c", arguments.next<int>()); return true;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A': append(text, c.head + c.letter, arguments.next<double>()); return true;
    case 'p':
      append(text, c.head + "p", reinterpret_cast<void*>(arguments.next<std::uint64_t>()));
      return true;
    case 's': return string(warp, lane, text, c, arguments);
    default:
      text += c.head;
      if (c.letter) text += c.letter;
      return true;
  }
}

}  // namespace

bool formatText(Warp& warp, unsigned lane, std::uint64_t formatAddress,
                std::uint64_t argumentAddress, std::string& text, int& taken) {
  std::string format;
  if (!readString(warp, lane, formatAddress, format)) return false;
  Arguments arguments(warp, lane, argumentAddress);
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      text += format[at++];
      continue;
    }
    const Conversion conversion = parseConversion(format, at, arguments);
    if (!convert(warp, lane, text, conversion, arguments) || !arguments.ok()) return false;
  }
  taken = arguments.taken();
  return true;
}

}  // namespace simulator::ptx
