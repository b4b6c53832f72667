// The summary of a traced program: how long its calls took, and its work on the GPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace interposer::trace {

/// Not thread-safe.
class Summary {
 public:
  void addCall(std::string_view name, std::uint64_t nanoseconds) { add(calls_, name, nanoseconds); }
  /// A kernel, copy or memset, as it ran on the GPU.
  void addWork(std::string_view name, std::uint64_t nanoseconds) { add(works_, name, nanoseconds); }

  bool empty() const { return calls_.empty() && works_.empty(); }

  /// A table of time, calls, average, minimum and maximum: first of the work on the GPU, then of
  /// the calls, the longest first. `lost`: pieces of work whose time is unknown.
  std::string table(std::string_view title, std::uint64_t lost) const;

 private:
  struct Row {
    std::uint64_t count = 0, total = 0, least = ~std::uint64_t{0}, most = 0;
  };
  using Rows = std::map<std::string, Row, std::less<>>;

  static void add(Rows& rows, std::string_view name, std::uint64_t nanoseconds);
  static std::string section(const char* title, const Rows& rows);

  Rows calls_;
  Rows works_;
};

/// Such as "1.2346ms".
std::string formatDuration(double nanoseconds);

}  // namespace interposer::trace
