#include "interposer/memory/device_ranges.h"

#include <mutex>

namespace interposer {

void DeviceRanges::add(std::uint64_t address, std::uint64_t bytes, std::uint64_t code) {
  const std::lock_guard lock(mutex_);
  ranges_[address] = {address + bytes, code};
}

void DeviceRanges::remove(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  ranges_.erase(address);
}

void DeviceRanges::removeOf(const std::function<bool(std::uint64_t)>& ended) {
  const std::lock_guard lock(mutex_);
  std::erase_if(ranges_, [&](const auto& entry) { return ended(entry.second.code); });
}

void DeviceRanges::clear() {
  const std::lock_guard lock(mutex_);
  ranges_.clear();
}

bool DeviceRanges::contains(std::uint64_t address, std::uint64_t bytes) const {
  const std::shared_lock lock(mutex_);
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return false;
  const auto& [begin, range] = *--next;
  return address >= begin && address < range.end && bytes <= range.end - address;
}

bool DeviceRanges::isAllocation(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const auto found = ranges_.find(address);
  return found != ranges_.end() && found->second.code == 0;
}

}  // namespace interposer
