#include "native/simulator/address_space.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "native/simulator/allocations.h"
#include "native/simulator/arena.h"
#include "native/simulator/context.h"
#include "native/simulator/pool.h"
#include "native/simulator/round_up.h"

namespace simulator {
namespace {

bool reaches(const Context& context, const Allocation& allocation) {
  // Kernels reach arrays through textures and surfaces only.
  if (!allocation.accessible || allocation.kind == MemoryKind::array) return false;
  if (allocation.host() || allocation.managed()) return true;
  if (allocation.kind == MemoryKind::mapped) return allocation.access.contains(&context.device);
  if (allocation.device == &context.device) return true;
  if (allocation.kind == MemoryKind::imported && !allocation.importedOfPool()) return true;
  if (allocation.kind == MemoryKind::graph) return allocation.access.contains(&context.device);
  if (allocation.pool != nullptr) return allocation.pool->accessibleFrom(context.device);
  return allocation.context != nullptr && context.peers.contains(allocation.context);
}

/// GPUs allocate whole units, and kernels reach the rest of the last one: NCCL reads whole words.
std::uint64_t endFor(const Allocation& allocation) {
  if (allocation.host() || hasChecks()) return allocation.end();
  return roundUp(allocation.end(), kAlignment);
}

/// The memory that kernels of one context may access. Each thread caches the sorted ranges. While
/// allocations do not change, a query costs one atomic load and a binary search.
class ContextMemory final : public AddressSpace {
 public:
  explicit ContextMemory(const Context& context) : context_(context) {}

  bool contains(std::uint64_t address, std::uint64_t bytes) const override;
  bool containsWritable(std::uint64_t address, std::uint64_t bytes) const override;
  std::array<std::uint64_t, 2> around(std::uint64_t address) const override;
  std::string describe(std::uint64_t address) const override;

 private:
  struct Range {
    std::uint64_t begin = 0, end = 0;
    bool writable = false;
    bool contains(std::uint64_t address, std::uint64_t bytes) const {
      return address >= begin && address < end && bytes <= end - address;
    }
  };
  struct Ranges {
    std::uint64_t version = 0;
    std::vector<Range> sorted;
  };
  const Ranges& ranges() const;
  Range find(std::uint64_t address) const;
  std::shared_ptr<const Ranges> build() const;

  const Context& context_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Ranges> latest_;
};

}  // namespace

std::shared_ptr<const ContextMemory::Ranges> ContextMemory::build() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t version = Allocations::all().version();
  if (latest_ != nullptr && latest_->version == version) return latest_;
  auto ranges = std::make_shared<Ranges>();
  // read before the visit, so that a concurrent change invalidates the ranges
  ranges->version = version;
  Allocations::all().each([&](const Allocation& allocation) {
    if (reaches(context_, allocation))
      ranges->sorted.push_back({allocation.begin, endFor(allocation), allocation.writable()});
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
  if (seen.owner != this || seen.ranges->version != Allocations::all().version())
    seen = {this, build()};
  return *seen.ranges;
}

/// The range that contains the address; an empty one if there is none.
ContextMemory::Range ContextMemory::find(std::uint64_t address) const {
  const auto& sorted = ranges().sorted;
  auto next = std::upper_bound(sorted.begin(), sorted.end(), address,
                               [](std::uint64_t a, const Range& range) { return a < range.begin; });
  if (next == sorted.begin()) return {};
  const Range& range = *std::prev(next);
  return address < range.end ? range : Range{};
}

std::array<std::uint64_t, 2> ContextMemory::around(std::uint64_t address) const {
  const Range range = find(address);
  return range.writable ? std::array{range.begin, range.end} : std::array<std::uint64_t, 2>{0, 0};
}

std::string ContextMemory::describe(std::uint64_t address) const {
  return Allocations::all().describe(address);
}

bool ContextMemory::contains(std::uint64_t address, std::uint64_t bytes) const {
  return find(address).contains(address, bytes);
}

bool ContextMemory::containsWritable(std::uint64_t address, std::uint64_t bytes) const {
  const Range range = find(address);
  return range.writable && range.contains(address, bytes);
}

std::unique_ptr<AddressSpace> makeAddressSpace(const Context& context) {
  return std::make_unique<ContextMemory>(context);
}

}  // namespace simulator
