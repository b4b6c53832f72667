#include "native/simulator/address_space.h"

#include <algorithm>

#include "native/simulator/context.h"
#include "native/simulator/pool.h"

namespace simulator {
namespace {

bool reaches(const Context& context, const Allocation& allocation) {
  if (allocation.host() || allocation.kind == MemoryKind::managed) return true;
  if (allocation.kind == MemoryKind::mapped) return allocation.access.contains(&context.device);
  if (allocation.device == &context.device) return true;
  if (allocation.pool != nullptr) return allocation.pool->accessibleFrom(context.device);
  return allocation.context != nullptr && context.peers.contains(allocation.context);
}

}  // namespace

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

std::shared_ptr<const ContextMemory::Ranges> ContextMemory::build() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t version = Allocations::all().version();
  if (latest_ != nullptr && latest_->version == version) return latest_;
  auto ranges = std::make_shared<Ranges>();
  ranges->version = version;  // read before the visit: a change that falls between makes the next question build again
  Allocations::all().each([&](const Allocation& allocation) {
    if (reaches(context_, allocation)) ranges->sorted.push_back({allocation.begin, allocation.end()});
  });
  latest_ = ranges;
  return ranges;
}

const ContextMemory::Ranges& ContextMemory::ranges() const {
  struct Seen {
    const ContextMemory* owner = nullptr;
    std::shared_ptr<const Ranges> ranges;
  };
  thread_local Seen seen;
  if (seen.owner != this || seen.ranges->version != Allocations::all().version()) seen = {this, build()};
  return *seen.ranges;
}

std::array<std::uint64_t, 2> ContextMemory::around(std::uint64_t address) const {
  const auto& sorted = ranges().sorted;
  auto next = std::upper_bound(sorted.begin(), sorted.end(), address, [](std::uint64_t a, const auto& range) { return a < range[0]; });
  if (next == sorted.begin()) return {0, 0};
  const auto& range = *std::prev(next);
  return address < range[1] ? range : std::array<std::uint64_t, 2>{0, 0};
}

bool ContextMemory::contains(std::uint64_t address, std::uint64_t bytes) const {
  const auto [begin, end] = around(address);
  return end != 0 && address >= begin && bytes <= end - address;
}

}  // namespace simulator
