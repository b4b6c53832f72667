// Thrust and CUB on many segments: reductions, sorts, scans.
#include <thrust/execution_policy.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include <algorithm>
#include <numeric>

#include "elements.h"

struct Segments {
  std::vector<int> offsets;
  explicit Segments(std::size_t count) {
    Random random(count);
    for (std::size_t at = 0; at < count; at += random.below(random.below(40) == 0 ? 20'000 : 60))
      offsets.push_back(static_cast<int>(at));
    offsets.push_back(static_cast<int>(count));
  }
  int number() const { return static_cast<int>(offsets.size()) - 1; }
};

void reduces(Cases& cases, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const Segments segments(count);
  const std::vector<std::uint64_t> host = randomElements<std::uint64_t>(count, 1);
  std::vector<std::uint64_t> expected;
  for (int s = 0; s < segments.number(); ++s) {
    expected.push_back(std::accumulate(host.begin() + segments.offsets[s],
                                       host.begin() + segments.offsets[s + 1], std::uint64_t{0}));
  }
  const Device<std::uint64_t> in(host);
  const Device<int> offsets(segments.offsets);
  Device<std::uint64_t> out(expected.size());
  cases.check("sums of segments", expected, [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceSegmentedReduce::Sum(storage, bytes, in.data(), out.data(),
                                             segments.number(), offsets.data(), offsets.data() + 1);
    });
    return out.read(expected.size());
  });
}

void sorts(Cases& cases, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const Segments segments(count);
  const std::vector<std::uint32_t> host = randomElements<std::uint32_t>(count, 2);
  std::vector<std::uint32_t> expected = host;
  for (int s = 0; s < segments.number(); ++s) {
    std::sort(expected.begin() + segments.offsets[s], expected.begin() + segments.offsets[s + 1]);
  }
  const Device<std::uint32_t> in(host);
  const Device<int> offsets(segments.offsets);
  Device<std::uint32_t> out(count);
  cases.check("sorts of segments", expected, [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceSegmentedSort::SortKeys(storage, bytes, in.data(), out.data(),
                                                static_cast<int>(count), segments.number(),
                                                offsets.data(), offsets.data() + 1);
    });
    return out.read(count);
  });
}

/// A segmented scan as Thrust writes it: by keys that identify the segments.
void scans(Cases& cases, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<std::uint32_t> hostKeys = keysInRuns(count, 2000, 9);
  const std::vector<std::uint64_t> host = randomElements<std::uint64_t>(count, 3);
  std::vector<std::uint64_t> expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    expected[i] = i > 0 && hostKeys[i] == hostKeys[i - 1] ? expected[i - 1] + host[i - 1] : 0;
  }
  const Device<std::uint32_t> keys(hostKeys);
  const Device<std::uint64_t> in(host);
  Device<std::uint64_t> out(count);
  cases.check("exclusive scans of segments", expected, [&] {
    out.spoil();
    thrust::exclusive_scan_by_key(thrust::device, keys.begin(), keys.end(), in.begin(), out.data());
    return out.read(count);
  });
}

void sortsByKey(Cases& cases, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<std::uint64_t> hostKeys = randomElements<std::uint64_t>(count, 4);
  std::vector<std::uint32_t> expected(count);
  std::iota(expected.begin(), expected.end(), 0u);
  const std::vector<std::uint32_t> inOrder = expected;
  std::sort(expected.begin(), expected.end(),
            [&](std::uint32_t a, std::uint32_t b) { return hostKeys[a] < hostKeys[b]; });
  Device<std::uint64_t> keys(count);
  Device<std::uint32_t> values(count);
  cases.check("Thrust's sort by key", expected, [&] {
    MUST(cudaMemcpy(keys.data(), hostKeys.data(), count * sizeof hostKeys[0],
                    cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(values.data(), inOrder.data(), count * sizeof inOrder[0],
                    cudaMemcpyHostToDevice));
    thrust::sort_by_key(thrust::device, keys.begin(), keys.end(), values.begin());
    return values.read(count);
  });
}

int main(int count, char** arguments) {
  Cases cases(count, arguments);
  reduces(cases, 2'000'000);
  sorts(cases, 1'000'000);
  scans(cases, 2'000'000);
  sortsByKey(cases, 1'000'000);
  return cases.close();
}
