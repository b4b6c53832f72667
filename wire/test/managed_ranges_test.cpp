#include "wire/managed_ranges.h"

#include <doctest/doctest.h>

#include <vector>

namespace {

constexpr std::uint64_t kBegin = 0x6400'0000'0000;
constexpr std::uint64_t kPage = 4096;

struct Managed {
  wire::ManagedRanges ranges;
  Managed() { ranges.add(kBegin, 10 * kPage); }
  int ask(CUmem_range_attribute attribute, std::uint64_t begin, std::uint64_t bytes) const {
    int value = 12345;
    CHECK(ranges.query(&value, sizeof value, attribute, begin, bytes) == CUDA_SUCCESS);
    return value;
  }
};

CUmemLocation device(int id) { return wire::managedLocation(id); }

TEST_CASE_FIXTURE(Managed, "advice holds for the pages that it names") {
  CHECK(ranges.advise(kBegin + kPage, 1, CU_MEM_ADVISE_SET_READ_MOSTLY, {}, 1) == CUDA_SUCCESS);
  CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, kBegin + kPage, kPage) == 1);
  CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, kBegin, kPage) == 0);
  CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, kBegin, 2 * kPage) == 0);
  CHECK(ranges.advise(kBegin, 10 * kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, {}, 1) == CUDA_SUCCESS);
  CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, kBegin, 10 * kPage) == 1);
}

TEST_CASE_FIXTURE(Managed, "a location counts if all pages have it") {
  CHECK(ranges.prefetch(kBegin, 5 * kPage, device(1), 2) == CUDA_SUCCESS);
  CHECK(ranges.prefetch(kBegin + 5 * kPage, 5 * kPage, device(CU_DEVICE_CPU), 2) == CUDA_SUCCESS);
  constexpr auto kLast = CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;
  CHECK(ask(kLast, kBegin, 5 * kPage) == 1);
  CHECK(ask(kLast, kBegin + 5 * kPage, 1) == CU_DEVICE_CPU);
  CHECK(ask(kLast, kBegin, 6 * kPage) == CU_DEVICE_INVALID);
}

TEST_CASE_FIXTURE(Managed, "the devices of a range are listed in order") {
  for (const int id : {2, 0})
    CHECK(ranges.advise(kBegin, kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, device(id), 3) ==
          CUDA_SUCCESS);
  int devices[4] = {7, 7, 7, 7};
  CHECK(ranges.query(devices, sizeof devices, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, kBegin, 1) ==
        CUDA_SUCCESS);
  CHECK(devices[0] == 0);
  CHECK(devices[1] == 2);
  CHECK(devices[2] == CU_DEVICE_INVALID);
}

TEST_CASE_FIXTURE(Managed, "what is no managed memory is refused") {
  const struct {
    std::uint64_t begin, bytes;
  } wrong[] = {{kBegin - 1, 2}, {kBegin, 10 * kPage + 1},    {kBegin, 0},
               {0, kPage},      {kBegin, ~std::uint64_t{0}}, {~std::uint64_t{0} - 10, 11}};
  for (const auto& [begin, bytes] : wrong) {
    CHECK(ranges.prefetch(begin, bytes, device(0), 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(ranges.discard(begin, bytes) == CUDA_ERROR_INVALID_VALUE);
  }
  CHECK(ranges.prefetch(kBegin, 1, device(1), 1) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(ranges.prefetch(kBegin, 1, device(-5), 1) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(ranges.prefetch(kBegin, 1, {}, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("variables in one page share its state until the last one ends") {
  wire::ManagedRanges ranges;
  ranges.add(kBegin, 8);
  ranges.add(kBegin + 8, kPage);
  CHECK(ranges.find(kBegin + 7)->begin == kBegin);
  CHECK(ranges.find(kBegin + 8)->bytes == kPage);
  CHECK(ranges.discard(kBegin, kPage + 8) == CUDA_SUCCESS);
  CHECK(ranges.remove(kBegin + 8));
  CHECK(!ranges.remove(kBegin + 8));
  CHECK(ranges.discard(kBegin, kPage) == CUDA_SUCCESS);
  CHECK(ranges.discard(kBegin + kPage, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(ranges.remove(kBegin));
  CHECK(ranges.discard(kBegin, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Managed, "a batch changes nothing if one range is wrong") {
  const CUdeviceptr begins[] = {kBegin, kBegin + 20 * kPage};
  const std::size_t sizes[] = {kPage, kPage};
  const CUmemLocation locations[] = {device(0), device(CU_DEVICE_CPU)};
  const std::size_t firsts[] = {0, 1};
  CHECK(ranges.prefetchBatch({begins, sizes, 2, locations, firsts, 1, 0}, 1) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, kBegin, 1) == CU_DEVICE_INVALID);
  CHECK(ranges.prefetchBatch({begins, sizes, 1, locations, firsts, 2, 0}, 1) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(ranges.prefetchBatch({begins, sizes, 1, locations, firsts, 1, 0}, 1) == CUDA_SUCCESS);
  CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, kBegin, 1) == 0);
}

TEST_CASE_FIXTURE(Managed, "only a whole allocation is attached") {
  CHECK(ranges.attach(kBegin, 0, CU_MEM_ATTACH_SINGLE, false) == CUDA_SUCCESS);
  CHECK(ranges.attach(kBegin, 10 * kPage, CU_MEM_ATTACH_HOST, true) == CUDA_SUCCESS);
  CHECK(ranges.attach(kBegin, kPage, CU_MEM_ATTACH_HOST, true) == CUDA_ERROR_INVALID_VALUE);
  CHECK(ranges.attach(kBegin, 0, CU_MEM_ATTACH_SINGLE, true) == CUDA_ERROR_INVALID_VALUE);
  CHECK(ranges.attach(kBegin + 1, 0, CU_MEM_ATTACH_GLOBAL, true) == CUDA_ERROR_INVALID_VALUE);
  CHECK(ranges.attach(kBegin, 0, 3, false) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
