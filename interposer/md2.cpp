#include "interposer/md2.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace interposer {

namespace {

/// The substitution of RFC 1319: a shuffle of 0..255 by the digits of pi, made as the RFC's footnote describes it (Durstenfeld's shuffle,
/// drawing from the decimal digits of pi).
class PiDigits {
 public:
  /// The next decimal digit, by Rabinowitz and Wagon's spigot.
  unsigned next() {
    while (at_ >= digits_.size()) produce();
    return digits_[at_++];
  }

  PiDigits() : remainders_(kLength, 2) {}

 private:
  static constexpr std::size_t kLength = 10 * 800 / 3;

  void produce() {
    unsigned carry = 0;
    for (std::size_t i = kLength; i-- > 0;) {
      const unsigned value = 10 * remainders_[i] + carry * static_cast<unsigned>(i + 1);
      const unsigned divisor = i == 0 ? 10 : static_cast<unsigned>(2 * i + 1);
      remainders_[i] = value % divisor;
      carry = value / divisor;
    }
    settle(carry);
  }

  /// A 9 or a 10 may still change what came before it.
  void settle(unsigned digit) {
    if (digit == 9) {
      ++nines_;
      return;
    }
    const unsigned overflow = digit == 10 ? 1 : 0;
    if (started_) digits_.push_back(held_ + overflow);
    for (; nines_ > 0; --nines_) digits_.push_back(overflow ? 0 : 9);
    held_ = overflow ? 0 : digit;
    started_ = true;
  }

  std::vector<unsigned> remainders_;
  std::vector<unsigned> digits_;
  std::size_t at_ = 0;
  unsigned held_ = 0;
  unsigned nines_ = 0;
  bool started_ = false;
};

/// A number below `limit` from as many digits as `limit` has, rejecting what would not be uniform.
unsigned draw(PiDigits& pi, unsigned limit) {
  for (;;) {
    unsigned value = pi.next();
    unsigned range = 10;
    if (limit > 10) value = value * 10 + pi.next(), range = 100;
    if (limit > 100) value = value * 10 + pi.next(), range = 1000;
    if (value < limit * (range / limit)) return value % limit;
  }
}

std::array<std::uint8_t, 256> makeSubstitution() {
  PiDigits pi;
  std::array<std::uint8_t, 256> table;
  for (unsigned i = 0; i < 256; ++i) table[i] = static_cast<std::uint8_t>(i);
  for (unsigned i = 2; i <= 256; ++i) std::swap(table[draw(pi, i)], table[i - 1]);
  return table;
}

const std::array<std::uint8_t, 256>& substitution() {
  static const std::array<std::uint8_t, 256> table = makeSubstitution();
  return table;
}

}  // namespace

Md2Digest md2(std::span<const std::uint8_t> message) {
  const auto& s = substitution();
  std::vector<std::uint8_t> padded(message.begin(), message.end());
  const auto pad = static_cast<std::uint8_t>(16 - padded.size() % 16);
  padded.insert(padded.end(), pad, pad);
  std::array<std::uint8_t, 16> checksum{};
  std::uint8_t last = 0;
  for (std::size_t i = 0; i < padded.size(); ++i) last = checksum[i % 16] ^= s[padded[i] ^ last];
  padded.insert(padded.end(), checksum.begin(), checksum.end());
  std::array<std::uint8_t, 48> state{};
  for (std::size_t block = 0; block < padded.size(); block += 16) {
    for (unsigned i = 0; i < 16; ++i) {
      state[16 + i] = padded[block + i];
      state[32 + i] = state[16 + i] ^ state[i];
    }
    unsigned t = 0;
    for (unsigned round = 0; round < 18; ++round) {
      for (auto& byte : state) t = byte ^= s[t];
      t = (t + round) % 256;
    }
  }
  Md2Digest digest;
  std::copy_n(state.begin(), 16, digest.begin());
  return digest;
}

Md2Digest hmacMd2(std::span<const std::uint8_t, 16> key, std::span<const std::uint8_t> message) {
  std::vector<std::uint8_t> inner;
  std::vector<std::uint8_t> outer;
  for (const std::uint8_t byte : key) {
    inner.push_back(byte ^ 0x36);
    outer.push_back(byte ^ 0x5c);
  }
  inner.insert(inner.end(), message.begin(), message.end());
  const Md2Digest digest = md2(inner);
  outer.insert(outer.end(), digest.begin(), digest.end());
  return md2(outer);
}

}  // namespace interposer
