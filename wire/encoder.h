// Writes values in sequence, each padded to 8 bytes. Counterpart of decoder.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace wire {

class Encoder {
 public:
  Encoder() = default;  // failed
  Encoder(std::byte* begin, std::size_t bytes) : begin_(begin), at_(begin), end_(begin + bytes) {}

  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (std::byte* to = take(sizeof(T))) std::memcpy(to, &value, sizeof(T));
  }

  /// A 64-bit length, then the bytes.
  void putBytes(const void* data, std::size_t bytes) {
    put<std::uint64_t>(bytes);
    if (std::byte* to = take(bytes); to != nullptr && bytes > 0) std::memcpy(to, data, bytes);
  }

  /// Writes a length and returns room for `bytes`, which the caller fills without another copy.
  /// Null if it does not fit.
  std::byte* putSpace(std::size_t bytes) {
    put<std::uint64_t>(bytes);
    return space(bytes);
  }

  /// The same without the length, which the reader knows otherwise.
  std::byte* space(std::size_t bytes) { return take(bytes); }

  bool failed() const { return failed_ || begin_ == nullptr; }
  std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }
  std::byte* data() const { return begin_; }

  static constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

 private:
  std::byte* take(std::size_t bytes) {
    if (failed_ || bytes > static_cast<std::size_t>(end_ - at_) ||
        padded(bytes) > static_cast<std::size_t>(end_ - at_)) {
      failed_ = true;
      return nullptr;
    }
    std::byte* to = at_;
    at_ += padded(bytes);
    return to;
  }

  std::byte* begin_ = nullptr;
  std::byte* at_ = nullptr;
  std::byte* end_ = nullptr;
  bool failed_ = false;
};

}  // namespace wire
