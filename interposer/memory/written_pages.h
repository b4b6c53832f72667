// Which pages the program has written, where the kernel can tell (Linux 6.7, userfaultfd allowed).
#pragma once

#include <cstdint>
#include <functional>

namespace interposer {

/// A range of anonymous memory. Follows writes by any thread, and by system calls.
class WrittenPages {
 public:
  WrittenPages(std::uint64_t begin, std::uint64_t end);
  /// Calls body(begin, end) for parts of the range. All that was written since the last call is in
  /// them; at first, and where the kernel cannot tell, that is the whole range. A write during the
  /// call is in them or in those of the next call. Not thread-safe.
  void take(const std::function<void(std::uint64_t, std::uint64_t)>& body);
  bool follows() const { return follows_; }

 private:
  bool takeFollowed(const std::function<void(std::uint64_t, std::uint64_t)>& body) const;

  const std::uint64_t begin_;
  const std::uint64_t end_;
  /// The pages that are wholly inside: others may hold a neighbour, whose writes count for both.
  const std::uint64_t firstPage_;
  const std::uint64_t pagesEnd_;
  bool follows_;
};

}  // namespace interposer
