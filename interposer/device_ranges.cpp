#include "interposer/device_ranges.h"

#include <mutex>

namespace interposer {

void DeviceRanges::add(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  ranges_[address] = address + bytes;
}

void DeviceRanges::remove(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  ranges_.erase(address);
}

void DeviceRanges::clear() {
  const std::lock_guard lock(mutex_);
  ranges_.clear();
}

bool DeviceRanges::contains(std::uint64_t address, std::uint64_t bytes) const {
  const std::shared_lock lock(mutex_);
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return false;
  const auto& [begin, end] = *--next;
  return address >= begin && address < end && bytes <= end - address;
}

}  // namespace interposer
