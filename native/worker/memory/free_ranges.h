// Free ranges of the pages that small allocations share.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace worker {

/// Not thread-safe.
class FreeRanges {
 public:
  /// Bytes of a page, and the alignment of its address.
  static constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

  /// The whole page is free.
  void addPage(std::uint64_t begin) { insert(begin, kPage); }

  /// Takes a range from the smallest free one that suffices. Returns 0 if there is none.
  std::uint64_t take(std::uint64_t bytes);

  /// Gives a range back. Returns whether its page is removed: because it is free as a whole, as
  /// another one is already, which is kept for the next request.
  bool give(std::uint64_t begin, std::uint64_t bytes);

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;

  void insert(std::uint64_t begin, std::uint64_t bytes);
  void erase(Ranges::iterator range);

  Ranges byAddress_;                                          ///< begin -> bytes
  std::set<std::pair<std::uint64_t, std::uint64_t>> bySize_;  ///< bytes, begin
};

}  // namespace worker
