// Inclusive and exclusive scans, by key too, of elements of 1 to 16 bytes.
#include <cub/device/device_scan.cuh>

#include "elements.h"

template <class T>
std::vector<T> scanned(const std::vector<T>& in, bool inclusive) {
  std::vector<T> result(in.size());
  T sum = zero<T>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const T before = sum;
    sum = Plus()(sum, in[i]);
    result[i] = inclusive ? sum : before;
  }
  return result;
}

template <class T>
void scans(Cases& cases, const char* type, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<T> host = randomElements<T>(count, count);
  const Device<T> in(host);
  Device<T> out(count);
  char name[64];
  std::snprintf(name, sizeof name, "inclusive scan of %zu %s", count, type);
  cases.check(name, scanned(host, true), [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveScan(storage, bytes, in.data(), out.data(), Plus(),
                                            static_cast<int>(count));
    });
    return out.read(count);
  });
  std::snprintf(name, sizeof name, "exclusive scan of %zu %s", count, type);
  cases.check(name, scanned(host, false), [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::ExclusiveScan(storage, bytes, in.data(), out.data(), Plus(),
                                            zero<T>(), static_cast<int>(count));
    });
    return out.read(count);
  });
}

template <class T>
void scansByKey(Cases& cases, const char* type, std::size_t usual) {
  const std::size_t count = cases.elements(usual);
  const std::vector<T> host = randomElements<T>(count, count);
  const std::vector<std::uint32_t> hostKeys = keysInRuns(count, 700, count);
  std::vector<T> expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    expected[i] =
        i > 0 && hostKeys[i] == hostKeys[i - 1] ? Plus()(expected[i - 1], host[i]) : host[i];
  }
  const Device<T> in(host);
  const Device<std::uint32_t> keys(hostKeys);
  Device<T> out(count);
  char name[64];
  std::snprintf(name, sizeof name, "inclusive scan by key of %zu %s", count, type);
  cases.check(name, expected, [&] {
    out.spoil();
    withStorage([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveScanByKey(storage, bytes, keys.data(), in.data(), out.data(),
                                                 Plus(), static_cast<int>(count));
    });
    return out.read(count);
  });
}

int main(int count, char** arguments) {
  Cases cases(count, arguments);
  scans<std::uint8_t>(cases, "bytes", 10'000'000);
  scans<std::uint16_t>(cases, "elements of 2 bytes", 3'000'000);
  scans<std::uint32_t>(cases, "elements of 4 bytes", 4'000'000);
  scans<std::uint64_t>(cases, "elements of 8 bytes", 2'000'000);
  scans<Affine>(cases, "elements of 16 bytes", 1'000'000);
  scansByKey<std::uint32_t>(cases, "elements of 4 bytes", 1'000'000);
  scansByKey<Affine>(cases, "elements of 16 bytes", 1'000'000);
  return cases.close();
}
