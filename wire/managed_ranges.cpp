#include "wire/managed_ranges.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace wire {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr int kMostDevices = 63;  // bits of a set of devices, less one for the host

std::uint64_t pageOf(std::uint64_t address) { return address / kPage * kPage; }
std::uint64_t pagesEnd(std::uint64_t address) { return pageOf(address + kPage - 1); }

bool overflows(std::uint64_t begin, std::uint64_t bytes) {
  return bytes == 0 || begin > ~std::uint64_t{0} - kPage ||
         bytes > ~std::uint64_t{0} - kPage - begin;
}

CUresult checkLocation(const CUmemLocation& location, int devices) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return location.id >= 0 && location.id < devices && location.id < kMostDevices
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return location.id >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/// The id of a location as the CUDA 8 attributes return it.
int deviceOf(CUmemLocationType type, int id) {
  if (type == CU_MEM_LOCATION_TYPE_DEVICE) return id;
  return type == CU_MEM_LOCATION_TYPE_HOST ? CU_DEVICE_CPU : CU_DEVICE_INVALID;
}

CUresult putInt(void* data, std::size_t size, int value) {
  if (size != sizeof value) return CUDA_ERROR_INVALID_VALUE;
  return std::memcpy(data, &value, sizeof value), CUDA_SUCCESS;
}

/// The devices of a set, filled up with CU_DEVICE_INVALID.
CUresult putDevices(void* data, std::size_t size, std::uint64_t set) {
  if (size == 0 || size % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto* out = static_cast<std::byte*>(data);
  int device = CU_DEVICE_CPU;
  for (std::size_t at = 0; at < size; at += sizeof(int)) {
    while (set != 0 && (set & 1) == 0) set >>= 1, ++device;
    const int value = set != 0 ? device : CU_DEVICE_INVALID;
    std::memcpy(out + at, &value, sizeof value);
    if (set != 0) set >>= 1, ++device;
  }
  return CUDA_SUCCESS;
}

std::uint64_t accessBit(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? std::uint64_t{2} << location.id : 1;
}

}  // namespace

/// State of all pages of a range.
struct ManagedRanges::Summary {
  bool readMostly = true;
  Place preferred;
  Place prefetched;
  std::uint64_t accessedBy = ~std::uint64_t{0};
};

CUmemLocation managedLocation(CUdevice device) {
  CUmemLocation location{};
  location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device;
  return location;
}

void ManagedRanges::add(std::uint64_t begin, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  ranges_[begin] = bytes;
  // Variables may share a page; then its state is common.
  std::uint64_t at = pageOf(begin);
  const std::uint64_t end = pagesEnd(begin + bytes);
  while (at < end) {
    const auto next = pages_.upper_bound(at);
    const bool known = next != pages_.begin() && std::prev(next)->second.end > at;
    const std::uint64_t stop = known                  ? std::prev(next)->second.end
                               : next == pages_.end() ? end
                                                      : std::min(end, next->first);
    if (!known) pages_[at].end = stop;
    at = stop;
  }
}

bool ManagedRanges::remove(std::uint64_t begin) {
  const std::lock_guard lock(mutex_);
  const auto range = ranges_.find(begin);
  if (range == ranges_.end()) return false;
  std::uint64_t first = pageOf(begin);
  std::uint64_t last = pagesEnd(begin + range->second);
  const auto next = ranges_.erase(range);
  if (next != ranges_.end() && next->first < last) last = pageOf(next->first);
  if (next != ranges_.begin()) {
    const auto previous = std::prev(next);
    const std::uint64_t end = previous->first + previous->second;
    if (end > first) first = pagesEnd(end);
  }
  if (first >= last) return true;
  split(first), split(last);
  pages_.erase(pages_.lower_bound(first), pages_.lower_bound(last));
  return true;
}

std::optional<ManagedRange> ManagedRanges::find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return std::nullopt;
  --next;
  if (address - next->first >= next->second) return std::nullopt;
  return ManagedRange{next->first, next->second};
}

bool ManagedRanges::covered(std::uint64_t begin, std::uint64_t end) const {
  auto next = pages_.upper_bound(begin);
  if (next == pages_.begin()) return false;
  for (--next; next != pages_.end() && next->first <= begin; ++next) {
    if (next->second.end >= end) return true;
    begin = next->second.end;
  }
  return false;
}

void ManagedRanges::split(std::uint64_t at) {
  auto next = pages_.upper_bound(at);
  if (next == pages_.begin()) return;
  --next;
  if (next->first == at || next->second.end <= at) return;
  Pages rest = next->second;
  next->second.end = at;
  pages_.emplace(at, rest);
}

template <class Change>
CUresult ManagedRanges::change(std::uint64_t begin, std::uint64_t bytes, Change change) {
  if (overflows(begin, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t first = pageOf(begin);
  const std::uint64_t last = pagesEnd(begin + bytes);
  const std::lock_guard lock(mutex_);
  if (!covered(first, last)) return CUDA_ERROR_INVALID_VALUE;
  split(first), split(last);
  for (auto next = pages_.find(first); next != pages_.end() && next->first < last; ++next)
    change(next->second);
  return CUDA_SUCCESS;
}

CUresult ManagedRanges::advise(std::uint64_t begin, std::uint64_t bytes, CUmem_advise advice,
                               CUmemLocation location, int devices) {
  const bool located = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                       advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                       advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  // Unlike a prefetch, an advice names no missing device (H200, driver 580).
  if (located && checkLocation(location, devices) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      return change(begin, bytes, [&](Pages& pages) {
        pages.readMostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
      });
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      return change(begin, bytes, [&](Pages& pages) {
        pages.preferred = {location.type, location.id};
      });
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      return change(begin, bytes, [&](Pages& pages) { pages.preferred = {}; });
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
      return change(begin, bytes, [&](Pages& pages) { pages.accessedBy |= accessBit(location); });
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      return change(begin, bytes, [&](Pages& pages) { pages.accessedBy &= ~accessBit(location); });
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult ManagedRanges::prefetch(std::uint64_t begin, std::uint64_t bytes, CUmemLocation location,
                                 int devices) {
  if (const CUresult status = checkLocation(location, devices); status != CUDA_SUCCESS)
    return status;
  return change(begin, bytes, [&](Pages& pages) {
    pages.prefetched = {location.type, location.id};
  });
}

CUresult ManagedRanges::discard(std::uint64_t begin, std::uint64_t bytes) const {
  if (overflows(begin, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(mutex_);
  return covered(pageOf(begin), pagesEnd(begin + bytes)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult ManagedRanges::discardBatch(const CUdeviceptr* begins, const std::size_t* sizes,
                                     std::size_t count, unsigned long long flags) const {
  if (begins == nullptr || sizes == nullptr || count == 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (const CUresult status = discard(begins[i], sizes[i]); status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

CUresult ManagedRanges::prefetchBatch(const PrefetchBatch& batch, int devices) {
  if (const CUresult status = discardBatch(batch.begins, batch.sizes, batch.count, batch.flags);
      status != CUDA_SUCCESS)
    return status;
  if (batch.locations == nullptr || batch.firstOf == nullptr || batch.numLocations == 0 ||
      batch.numLocations > batch.count || batch.firstOf[0] != 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < batch.numLocations; ++i) {
    const bool ascending = i == 0 || batch.firstOf[i] > batch.firstOf[i - 1];
    if (!ascending || batch.firstOf[i] >= batch.count) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkLocation(batch.locations[i], devices); status != CUDA_SUCCESS)
      return status;
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < batch.count; ++i) {
    while (at + 1 < batch.numLocations && batch.firstOf[at + 1] <= i) ++at;
    prefetch(batch.begins[i], batch.sizes[i], batch.locations[at], devices);
  }
  return CUDA_SUCCESS;
}

/// Only a whole allocation can be attached, and a single stream must not be the default stream.
CUresult ManagedRanges::attach(std::uint64_t begin, std::uint64_t bytes, unsigned flags,
                               bool nullStream) const {
  const bool single = flags == CU_MEM_ATTACH_SINGLE;
  if (!single && flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
    return CUDA_ERROR_INVALID_VALUE;
  if (single && nullStream) return CUDA_ERROR_INVALID_VALUE;
  const auto range = find(begin);
  const bool whole = range && range->begin == begin && (bytes == 0 || bytes == range->bytes);
  return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ManagedRanges::Summary ManagedRanges::summarise(std::uint64_t begin, std::uint64_t end) const {
  Summary all;
  bool first = true;
  auto next = std::prev(pages_.upper_bound(begin));
  for (; next != pages_.end() && next->first < end; ++next) {
    const Pages& pages = next->second;
    all.readMostly = all.readMostly && pages.readMostly;
    all.accessedBy &= pages.accessedBy;
    all.preferred = first || all.preferred == pages.preferred ? pages.preferred : Place{};
    all.prefetched = first || all.prefetched == pages.prefetched ? pages.prefetched : Place{};
    first = false;
  }
  return all;
}

CUresult ManagedRanges::query(void* data, std::size_t size, CUmem_range_attribute attribute,
                              std::uint64_t begin, std::uint64_t bytes) const {
  if (data == nullptr || overflows(begin, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t last = pagesEnd(begin + bytes);
  const std::lock_guard lock(mutex_);
  if (!covered(pageOf(begin), last)) return CUDA_ERROR_INVALID_VALUE;
  const Summary all = summarise(pageOf(begin), last);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: return putInt(data, size, all.readMostly);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      return putInt(data, size, deviceOf(all.preferred.type, all.preferred.id));
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: return putDevices(data, size, all.accessedBy);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      return putInt(data, size, deviceOf(all.prefetched.type, all.prefetched.id));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      return putInt(data, size, all.preferred.type);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: return putInt(data, size, all.preferred.id);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      return putInt(data, size, all.prefetched.type);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      return putInt(data, size, all.prefetched.id);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult ManagedRanges::queryAll(void** data, const std::size_t* sizes,
                                 const CUmem_range_attribute* attributes, std::size_t count,
                                 std::uint64_t begin, std::uint64_t bytes) const {
  if (data == nullptr || sizes == nullptr || attributes == nullptr || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (const CUresult status = query(data[i], sizes[i], attributes[i], begin, bytes);
        status != CUDA_SUCCESS)
      return status;
  }
  return CUDA_SUCCESS;
}

}  // namespace wire
