#include "native/simulator/allocations.h"

#include <algorithm>
#include <cstdio>

#include "cuda_abi.h"

namespace simulator {

bool Allocation::writable() const {
  return kind != MemoryKind::hostRegistered || (flags & CU_MEMHOSTREGISTER_READ_ONLY) == 0;
}

Allocations& Allocations::all() {
  static Allocations& allocations = *new Allocations;
  return allocations;
}

void Allocations::add(Allocation allocation) {
  const std::lock_guard lock(mutex_);
  allocation.id = nextId_++;
  const std::uint64_t begin = allocation.begin;
  byAddress_.insert_or_assign(begin, std::move(allocation));
  changed();
}

const Allocation* Allocations::around(std::uint64_t address) const {
  auto next = byAddress_.upper_bound(address);
  if (next == byAddress_.begin()) return nullptr;
  const Allocation& allocation = std::prev(next)->second;
  return address < allocation.end() ? &allocation : nullptr;
}

std::optional<Allocation> Allocations::find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const Allocation* allocation = around(address);
  return allocation == nullptr ? std::nullopt : std::optional(*allocation);
}

bool Allocations::overlaps(std::uint64_t begin, std::uint64_t size) const {
  const std::lock_guard lock(mutex_);
  const auto next = byAddress_.lower_bound(begin);
  if (next != byAddress_.end() && next->first - begin < size) return true;
  return around(begin) != nullptr;
}

std::string Allocations::describe(std::uint64_t address) const {
  constexpr std::uint64_t kNear = 1 << 20;
  const auto range = [](std::uint64_t begin, std::uint64_t end) {
    char text[64];
    std::snprintf(text, sizeof text, "%llu bytes at 0x%llx",
                  static_cast<unsigned long long>(end - begin),
                  static_cast<unsigned long long>(begin));
    return std::string(text);
  };
  const std::lock_guard lock(mutex_);
  for (auto freed = freed_.rbegin(); freed != freed_.rend(); ++freed) {
    const auto [begin, end] = *freed;
    if (address >= begin && address < end)
      return "byte " + std::to_string(address - begin) + " of the " + range(begin, end) +
             ", which are freed";
  }
  const auto next = byAddress_.upper_bound(address);
  if (next != byAddress_.begin()) {
    const Allocation& before = std::prev(next)->second;
    if (address >= before.end() && address - before.end() < kNear)
      return std::to_string(address - before.end()) + " bytes behind the " +
             range(before.begin, before.end());
  }
  if (next == byAddress_.end() || next->first - address >= kNear) return {};
  return std::to_string(next->first - address) + " bytes before the " +
         range(next->first, next->second.end());
}

}  // namespace simulator
