// Reductions, selections, runs and histograms.
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_merge.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <numeric>

#include "elements.h"

struct Odd {
  template <class T>
  __host__ __device__ bool operator()(const T& value) const {
    return value % 3 == 1;
  }
  __host__ __device__ bool operator()(const Affine& value) const { return value.shift % 3 == 1; }
};

template <class T>
void reduces(Cases& cases, const char* name, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<T> host = randomElements<T>(count, count);
  const Device<T> in(host);
  Device<T> out(1);
  // Only addition: CUB may reduce in any order of commutative operators.
  cases.check(name, std::vector<T>{std::accumulate(host.begin(), host.end(), T{})}, [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceReduce::Sum(storage, bytes, in.data(), out.data(), static_cast<int>(count));
    });
    return out.read(1);
  });
}

template <class T>
void reducesByKey(Cases& cases, const char* name, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<T> host = randomElements<T>(count, count);
  const std::vector<std::uint32_t> hostKeys = keysInRuns(count, 300, count);
  std::vector<T> expected;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && hostKeys[i] == hostKeys[i - 1]) {
      expected.back() = Plus()(expected.back(), host[i]);
    } else {
      expected.push_back(host[i]);
    }
  }
  const Device<std::uint32_t> keys(hostKeys);
  const Device<T> in(host);
  Device<std::uint32_t> unique(count);
  Device<T> sums(count);
  Device<int> runs(1);
  cases.check(name, expected, [&] {
    sums.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceReduce::ReduceByKey(storage, bytes, keys.data(), unique.data(), in.data(),
                                            sums.data(), runs.data(), Plus(),
                                            static_cast<int>(count));
    });
    return sums.read(static_cast<std::size_t>(runs.read(1)[0]));
  });
}

template <class T>
void selects(Cases& cases, const char* name, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<T> host = randomElements<T>(count, count);
  std::vector<T> chosen, others;
  for (const T& value : host) (Odd()(value) ? chosen : others).push_back(value);
  const Device<T> in(host);
  Device<T> out(count);
  Device<int> number(1);
  cases.check(name, chosen, [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceSelect::If(storage, bytes, in.data(), out.data(), number.data(),
                                   static_cast<int>(count), Odd());
    });
    return out.read(static_cast<std::size_t>(number.read(1)[0]));
  });
  std::vector<T> both = chosen;
  both.insert(both.end(), others.rbegin(), others.rend());
  cases.check("partition of the same", both, [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DevicePartition::If(storage, bytes, in.data(), out.data(), number.data(),
                                      static_cast<int>(count), Odd());
    });
    return out.read(count);
  });
}

void uniques(Cases& cases, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<std::uint32_t> host = keysInRuns(count, 9, 11);
  std::vector<std::uint32_t> expected = host;
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  std::vector<int> lengths;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0 || host[i] != host[i - 1]) lengths.push_back(0);
    ++lengths.back();
  }
  const Device<std::uint32_t> in(host);
  Device<std::uint32_t> out(count);
  Device<int> runs(count), number(1);
  cases.check("unique", expected, [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceSelect::Unique(storage, bytes, in.data(), out.data(), number.data(),
                                       static_cast<int>(count));
    });
    return out.read(static_cast<std::size_t>(number.read(1)[0]));
  });
  cases.check("lengths of runs", lengths, [&] {
    runs.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRunLengthEncode::Encode(storage, bytes, in.data(), out.data(), runs.data(),
                                                number.data(), static_cast<int>(count));
    });
    return runs.read(static_cast<std::size_t>(number.read(1)[0]));
  });
}

void merges(Cases& cases, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  std::vector<std::uint64_t> a = randomElements<std::uint64_t>(count, 1),
                             b = randomElements<std::uint64_t>(count / 3, 2);
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<std::uint64_t> expected(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), expected.begin());
  const Device<std::uint64_t> left(a), right(b);
  Device<std::uint64_t> out(expected.size());
  cases.check("merge of elements of 8 bytes", expected, [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceMerge::MergeKeys(storage, bytes, left.data(), static_cast<int>(a.size()),
                                         right.data(), static_cast<int>(b.size()), out.data());
    });
    return out.read(expected.size());
  });
}

void histograms(Cases& cases, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<std::uint8_t> host = randomElements<std::uint8_t>(count, 7);
  std::vector<int> expected(256);
  for (const std::uint8_t value : host) ++expected[value];
  const Device<std::uint8_t> in(host);
  Device<int> bins(256);
  cases.check("histogram of bytes", expected, [&] {
    bins.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceHistogram::HistogramEven(storage, bytes, in.data(), bins.data(), 257, 0,
                                                 256, static_cast<int>(count));
    });
    return bins.read(256);
  });
}

int main(int count, char** arguments) {
  Cases cases(count, arguments);
  reduces<std::uint8_t>(cases, "sum of bytes", 10'000'000);
  reduces<std::uint64_t>(cases, "sum of elements of 8 bytes", 4'000'000);
  reducesByKey<std::uint32_t>(cases, "sum by key of elements of 4 bytes", 1'000'000);
  reducesByKey<Affine>(cases, "composition by key of elements of 16 bytes", 1'000'000);
  selects<std::uint8_t>(cases, "selection of bytes", 4'000'000);
  selects<std::uint32_t>(cases, "selection of elements of 4 bytes", 2'000'000);
  selects<Affine>(cases, "selection of elements of 16 bytes", 1'000'000);
  uniques(cases, 2'000'000);
  merges(cases, 1'000'000);
  histograms(cases, 10'000'000);
  return cases.close();
}
