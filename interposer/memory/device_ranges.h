// Device memory that this process has allocated: a copy or memset inside it is valid and need not
// wait for a reply.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <shared_mutex>

namespace interposer {

/// Thread-safe. An unlisted address is no error: the driver decides.
class DeviceRanges {
 public:
  /// `code`: the handle of the module or library whose variable it is.
  void add(std::uint64_t address, std::uint64_t bytes, std::uint64_t code = 0);
  void remove(std::uint64_t address);
  void removeOf(const std::function<bool(std::uint64_t code)>& ended);
  void clear();
  /// True when [address, address + bytes) lies inside one known allocation.
  bool contains(std::uint64_t address, std::uint64_t bytes) const;
  /// Whether a known allocation, and no variable, begins at the address.
  bool isAllocation(std::uint64_t address) const;

 private:
  mutable std::shared_mutex mutex_;
  struct Range {
    std::uint64_t end;
    std::uint64_t code;
  };
  std::map<std::uint64_t, Range> ranges_;  ///< by where they begin
};

}  // namespace interposer
