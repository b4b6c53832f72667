// Reads the output of an Encoder. The peer is not trusted, so every read is checked against the
// end. The first failure sticks, and later reads return zero. Callers check ok() once, after the
// last read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace wire {

class Decoder {
 public:
  Decoder() = default;  // failed
  Decoder(const std::byte* begin, std::size_t bytes) : at_(begin), end_(begin + bytes), ok_(true) {}

  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (const std::byte* from = take(sizeof(T))) std::memcpy(&value, from, sizeof(T));
    return value;
  }

  /// The bytes of putBytes or putSpace, in place. Fails if there are more than `limit`.
  std::span<const std::byte> getBytes(std::size_t limit) {
    return getSpace(get<std::uint64_t>(), limit);
  }

  /// The bytes of space(), in place. Fails if `bytes` exceeds `limit`.
  std::span<const std::byte> getSpace(std::uint64_t bytes, std::size_t limit) {
    if (bytes > limit) return fail();
    const std::byte* from = take(bytes);
    return from ? std::span<const std::byte>(from, bytes) : std::span<const std::byte>();
  }

  /// An array of whole T, in place. Frames are 8-byte aligned, so T must not need more.
  template <class T>
  std::span<const T> getArray(std::size_t limit) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);
    const auto bytes = getBytes(limit * sizeof(T));
    if (bytes.size() % sizeof(T) != 0) return (void)fail(), std::span<const T>();
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  /// A NUL-terminated string of putBytes. Null on failure.
  const char* getString(std::size_t limit) {
    const auto bytes = getBytes(limit);
    if (bytes.empty() || bytes.back() != std::byte{0}) return (void)fail(), nullptr;
    return reinterpret_cast<const char*>(bytes.data());
  }

  bool ok() const { return ok_; }
  /// Whether nothing failed and nothing is left. A frame with more data than its call reads is
  /// refused.
  bool finished() const { return ok_ && at_ == end_; }
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }

 private:
  const std::byte* take(std::uint64_t bytes) {
    const std::uint64_t left = static_cast<std::uint64_t>(end_ - at_);
    const std::uint64_t padded = (bytes + 7) & ~std::uint64_t{7};
    if (!ok_ || bytes > left || padded > left) return fail(), nullptr;
    const std::byte* from = at_;
    at_ += padded;
    return from;
  }

  std::span<const std::byte> fail() {
    ok_ = false;
    at_ = end_;
    return {};
  }

  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
  bool ok_ = false;
};

}  // namespace wire
