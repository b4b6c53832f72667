// What the process has allocated on devices, so that a copy or memset that is certainly valid need not wait for an answer.
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>

namespace interposer {

/// Thread-safe. An address that is not listed is not an error: the worker's driver decides then.
class DeviceRanges {
 public:
  void add(std::uint64_t address, std::uint64_t bytes);
  void remove(std::uint64_t address);
  void clear();
  /// True when [address, address + bytes) lies inside one known allocation.
  bool contains(std::uint64_t address, std::uint64_t bytes) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> ranges_;  ///< begin -> end
};

}  // namespace interposer
