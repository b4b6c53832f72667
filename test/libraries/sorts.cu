// Radix and merge sorts of keys and of pairs.
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

#include <algorithm>
#include <numeric>

#include "elements.h"

struct ByShift {
  __host__ __device__ bool operator()(const Affine& a, const Affine& b) const {
    return a.shift % 1000 < b.shift % 1000;
  }
};

template <class T>
void radixKeys(Cases& cases, const char* type, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<T> host = randomElements<T>(count, count);
  std::vector<T> expected = host;
  std::sort(expected.begin(), expected.end());
  const Device<T> in(host);
  Device<T> out(count);
  char name[64];
  std::snprintf(name, sizeof name, "radix sort of %zu %s", count, type);
  cases.check(name, expected, [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(storage, bytes, in.data(), out.data(),
                                            static_cast<int>(count));
    });
    return out.read(count);
  });
}

/// Stable and descending: equal keys keep the order of their values.
void radixPairs(Cases& cases, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  std::vector<std::uint32_t> keys = randomElements<std::uint32_t>(count, 3), values(count);
  for (std::uint32_t& key : keys) key %= 5000;
  std::iota(values.begin(), values.end(), 0u);
  std::vector<std::uint32_t> expected = values;
  std::stable_sort(expected.begin(), expected.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
  const Device<std::uint32_t> in(keys), indices(values);
  Device<std::uint32_t> out(count), order(count);
  cases.check("radix sort of pairs, downwards", expected, [&] {
    order.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairsDescending(storage, bytes, in.data(), out.data(),
                                                       indices.data(), order.data(),
                                                       static_cast<int>(count));
    });
    return order.read(count);
  });
}

void mergePairs(Cases& cases, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<Affine> host = randomElements<Affine>(count, 5);
  std::vector<Affine> expected = host;
  std::stable_sort(expected.begin(), expected.end(), ByShift());
  const Device<Affine> in(host);
  Device<Affine> out(count);
  cases.check("merge sort of elements of 16 bytes", expected, [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceMergeSort::StableSortKeysCopy(storage, bytes, in.data(), out.data(),
                                                      static_cast<int>(count), ByShift());
    });
    return out.read(count);
  });
}

int main(int count, char** arguments) {
  Cases cases(count, arguments);
  radixKeys<std::uint8_t>(cases, "bytes", 4'000'000);
  radixKeys<std::int16_t>(cases, "elements of 2 bytes", 1'000'000);
  radixKeys<std::uint32_t>(cases, "elements of 4 bytes", 1'000'000);
  radixKeys<float>(cases, "floats", 1'000'000);
  radixKeys<double>(cases, "doubles", 1'000'000);
  radixPairs(cases, 1'000'000);
  mergePairs(cases, 1'000'000);
  return cases.close();
}
