#include "native/worker/accounts/physical_memory.h"

#include <iterator>

namespace worker {

void PhysicalMemory::created(CUmemGenericAllocationHandle handle, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  handles_[handle] = ++last_;
  allocations_[last_] = {bytes, 1, 0};
}

void PhysicalMemory::retained(CUmemGenericAllocationHandle handle, std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin() ||
      address - std::prev(next)->first >= std::prev(next)->second.bytes)
    return;
  const std::uint64_t number = std::prev(next)->second.allocation;
  ++allocations_.at(number).references;
  handles_[handle] = number;
}

std::pair<std::uint64_t, bool> PhysicalMemory::released(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return {0, true};
  const auto allocation = allocations_.find(known->second);
  const bool last = --allocation->second.references == 0;
  if (last) handles_.erase(known);
  return {freed(allocation), last};
}

void PhysicalMemory::mapped(CUmemGenericAllocationHandle handle, std::uint64_t address,
                            std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return;
  ++allocations_.at(known->second).mappings;
  mappings_[address] = {bytes, known->second};
}

std::uint64_t PhysicalMemory::unmapped(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::uint64_t total = 0;
  for (auto mapping = mappings_.lower_bound(address);
       mapping != mappings_.end() && mapping->first - address < bytes;) {
    const auto allocation = allocations_.find(mapping->second.allocation);
    mapping = mappings_.erase(mapping);
    --allocation->second.mappings;
    total += freed(allocation);
  }
  return total;
}

void PhysicalMemory::mappedInto(CUmemGenericAllocationHandle handle, const void* array,
                                const void* context) {
  const std::lock_guard lock(mutex_);
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return;
  Array& into = arrays_.try_emplace(array, Array{context, {}}).first->second;
  if (into.allocations.insert(known->second).second) ++allocations_.at(known->second).mappings;
}

std::uint64_t PhysicalMemory::arrayEnded(const void* array) {
  const std::lock_guard lock(mutex_);
  const auto found = arrays_.find(array);
  return found == arrays_.end() ? 0 : ended(found);
}

std::uint64_t PhysicalMemory::arraysEnded(const void* context) {
  const std::lock_guard lock(mutex_);
  std::uint64_t total = 0;
  for (auto array = arrays_.begin(); array != arrays_.end();) {
    const auto next = std::next(array);
    if (array->second.context == context) total += ended(array);
    array = next;
  }
  return total;
}

std::uint64_t PhysicalMemory::ended(Arrays::iterator array) {
  std::uint64_t total = 0;
  for (const std::uint64_t number : array->second.allocations) {
    const auto allocation = allocations_.find(number);
    --allocation->second.mappings;
    total += freed(allocation);
  }
  arrays_.erase(array);
  return total;
}

/// Erases the allocation if it has no references and no mappings; neither handles_ nor mappings_
/// names it then. Returns the bytes freed.
std::uint64_t PhysicalMemory::freed(Allocations::iterator allocation) {
  if (allocation->second.references > 0 || allocation->second.mappings > 0) return 0;
  const std::uint64_t bytes = allocation->second.bytes;
  allocations_.erase(allocation);
  return bytes;
}

}  // namespace worker
