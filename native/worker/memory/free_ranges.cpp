#include "native/worker/memory/free_ranges.h"

#include <iterator>

namespace worker {

void FreeRanges::insert(std::uint64_t begin, std::uint64_t bytes) {
  byAddress_.emplace(begin, bytes);
  bySize_.emplace(bytes, begin);
}

void FreeRanges::erase(Ranges::iterator range) {
  bySize_.erase({range->second, range->first});
  byAddress_.erase(range);
}

std::uint64_t FreeRanges::take(std::uint64_t bytes) {
  const auto found = bySize_.lower_bound({bytes, 0});
  if (found == bySize_.end()) return 0;
  const auto [size, begin] = *found;
  erase(byAddress_.find(begin));
  if (size > bytes) insert(begin + bytes, size - bytes);
  return begin;
}

/// Ranges of different pages are never joined, because pages are freed one by one.
bool FreeRanges::give(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t page = begin / kPage * kPage;
  std::uint64_t end = begin + bytes;
  const auto next = byAddress_.find(end);
  if (next != byAddress_.end() && end < page + kPage) {
    end += next->second;
    erase(next);
  }
  const auto after = byAddress_.lower_bound(begin);
  if (after != byAddress_.begin()) {
    const auto before = std::prev(after);
    if (before->first >= page && before->first + before->second == begin) {
      begin = before->first;
      erase(before);
    }
  }
  if (end - begin == kPage && bySize_.lower_bound({kPage, 0}) != bySize_.end()) return true;
  insert(begin, end - begin);
  return false;
}

}  // namespace worker
