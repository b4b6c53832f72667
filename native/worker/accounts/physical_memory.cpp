#include "native/worker/accounts/physical_memory.h"

#include <iterator>

namespace worker {

void PhysicalMemory::created(CUmemGenericAllocationHandle handle, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Allocation& made = allocations_[++last_];
  made.bytes = bytes;
  refer(handle, last_);
}

/// The driver may give the handle that it has already given for the same memory.
void PhysicalMemory::imported(CUmemGenericAllocationHandle handle,
                              std::shared_ptr<void> companion) {
  const std::lock_guard lock(mutex_);
  if (const auto known = handles_.find(handle); known != handles_.end())
    return refer(handle, known->second.allocation);
  Allocation& made = allocations_[++last_];
  made.imported = true;
  made.companion = std::move(companion);
  refer(handle, last_);
}

void PhysicalMemory::importedAgain(CUmemGenericAllocationHandle handle, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  refer(handle, number);
}

void PhysicalMemory::refer(CUmemGenericAllocationHandle handle, std::uint64_t number) {
  const auto [known, isNew] = handles_.try_emplace(handle, Handle{number, 0});
  ++known->second.references;
  ++allocations_.at(known->second.allocation).references;
}

std::optional<PhysicalMemory::Held> PhysicalMemory::hold(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return std::nullopt;
  const std::uint64_t number = known->second.allocation;
  Allocation& allocation = allocations_.at(number);
  if (allocation.imported) return std::nullopt;
  ++allocation.holds;
  return Held{number, allocation.bytes};
}

bool PhysicalMemory::holdAgain(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto allocation = allocations_.find(number);
  if (allocation == allocations_.end()) return false;
  ++allocation->second.holds;
  return true;
}

std::uint64_t PhysicalMemory::letGo(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto allocation = allocations_.find(number);
  if (allocation == allocations_.end() || allocation->second.holds == 0) return 0;
  --allocation->second.holds;
  return freed(allocation);
}

void PhysicalMemory::onEnd(std::uint64_t number, std::function<void()> end) {
  const std::lock_guard lock(mutex_);
  const auto allocation = allocations_.find(number);
  if (allocation != allocations_.end() && !allocation->second.end)
    allocation->second.end = std::move(end);
}

bool PhysicalMemory::retained(CUmemGenericAllocationHandle handle, std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin() ||
      address - std::prev(next)->first >= std::prev(next)->second.bytes)
    return false;
  const std::uint64_t number = std::prev(next)->second.allocation;
  refer(handle, number);
  return true;
}

std::pair<std::uint64_t, bool> PhysicalMemory::released(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return {0, true};
  const auto allocation = allocations_.find(known->second.allocation);
  --allocation->second.references;
  const bool last = --known->second.references == 0;
  if (last) handles_.erase(known);
  return {freed(allocation), last};
}

void PhysicalMemory::mapped(CUmemGenericAllocationHandle handle, std::uint64_t address,
                            std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return;
  ++allocations_.at(known->second.allocation).mappings;
  mappings_[address] = {bytes, known->second.allocation};
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
  const std::uint64_t number = known->second.allocation;
  if (into.allocations.insert(number).second) ++allocations_.at(number).mappings;
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

/// Erases the allocation if it is not referred to, mapped or held; neither handles_ nor mappings_
/// names it then. Returns the bytes freed.
std::uint64_t PhysicalMemory::freed(Allocations::iterator allocation) {
  const Allocation& now = allocation->second;
  if (now.references > 0 || now.mappings > 0 || now.holds > 0) return 0;
  if (now.end) now.end();
  const std::uint64_t bytes = now.bytes;
  allocations_.erase(allocation);
  return bytes;
}

}  // namespace worker
