// The element types of the library tests, of 1 to 16 bytes.
#pragma once

#include <cstdint>

#include "check.h"

/// x -> scale * x + shift modulo 2^64. Composition is associative but not commutative, so a scan in
/// a wrong order is detected.
struct alignas(16) Affine {
  std::uint64_t scale, shift;
  __host__ __device__ bool operator==(const Affine& other) const {
    return scale == other.scale && shift == other.shift;
  }
};

struct Plus {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return static_cast<T>(a + b);
  }
  __host__ __device__ Affine operator()(const Affine& a, const Affine& b) const {
    return {a.scale * b.scale, b.scale * a.shift + b.shift};
  }
};

template <class T>
T zero() {
  return T{};
}
template <>
inline Affine zero<Affine>() {
  return {1, 0};
}

template <class T>
T randomElement(Random& random) {
  return static_cast<T>(random.next());
}
template <>
inline Affine randomElement<Affine>(Random& random) {
  return {random.next() | 1, random.next()};
}
template <>
inline float randomElement<float>(Random& random) {
  return static_cast<float>(static_cast<std::int64_t>(random.next()) >> 40) * 0.37f;
}
template <>
inline double randomElement<double>(Random& random) {
  return static_cast<double>(static_cast<std::int64_t>(random.next()) >> 11) * 1e-3;
}

template <class T>
std::vector<T> randomElements(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<T> result;
  result.reserve(count);
  while (result.size() < count) result.push_back(randomElement<T>(random));
  return result;
}

/// Keys in runs of random lengths up to `longest`.
inline std::vector<std::uint32_t> keysInRuns(std::size_t count, std::size_t longest,
                                             std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint32_t> result;
  result.reserve(count);
  for (std::uint32_t key = 0; result.size() < count; ++key) {
    for (std::size_t left = 1 + random.below(longest); left > 0 && result.size() < count; --left)
      result.push_back(key);
  }
  return result;
}
