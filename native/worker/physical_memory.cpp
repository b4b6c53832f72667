#include "native/worker/physical_memory.h"

namespace worker {

void PhysicalMemory::created(CUmemGenericAllocationHandle handle, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  allocations_[handle] = {bytes, 1, 0};
}

void PhysicalMemory::retained(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  if (const auto found = allocations_.find(handle); found != allocations_.end()) ++found->second.references;
}

std::pair<std::uint64_t, bool> PhysicalMemory::released(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end()) return {0, true};
  const bool last = --found->second.references == 0;
  return {freed(found), last};
}

void PhysicalMemory::mapped(CUmemGenericAllocationHandle handle, std::uint64_t address, std::uint64_t) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end()) return;
  ++found->second.mappings;
  mappings_[address] = handle;
}

std::uint64_t PhysicalMemory::unmapped(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::uint64_t total = 0;
  for (auto mapping = mappings_.lower_bound(address); mapping != mappings_.end() && mapping->first - address < bytes;) {
    const auto found = allocations_.find(mapping->second);
    mapping = mappings_.erase(mapping);
    if (found == allocations_.end()) continue;
    --found->second.mappings;
    total += freed(found);
  }
  return total;
}

std::uint64_t PhysicalMemory::freed(std::map<CUmemGenericAllocationHandle, Allocation>::iterator allocation) {
  if (allocation->second.references > 0 || allocation->second.mappings > 0) return 0;
  const std::uint64_t bytes = allocation->second.bytes;
  allocations_.erase(allocation);
  return bytes;
}

}  // namespace worker
