// All memory that the driver handed out in this process, and what of it each context may reach.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "native/simulator/engine.h"

namespace simulator {

struct Context;
class Device;
struct Pool;

enum class MemoryKind { device, pool, heap, module, managed, mapped, hostAllocated, hostRegistered };

struct Allocation {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;  ///< as asked for
  MemoryKind kind = MemoryKind::device;
  Context* context = nullptr;  ///< with which it ends; null for what is of a pool or mapped: those are the device's
  Device* device = nullptr;    ///< whose memory it takes; null for host memory
  unsigned flags = 0;          ///< host memory: of cuMemHostAlloc or cuMemHostRegister
  std::uint64_t id = 0;        ///< CU_POINTER_ATTRIBUTE_BUFFER_ID
  bool synchronous = false;    ///< CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
  bool freeing = false;        ///< cuMemFreeAsync was called: a second free is an error
  std::shared_ptr<Pool> pool;
  std::set<const Device*> access;  ///< mapped memory: the devices that cuMemSetAccess named
  std::uint64_t handle = 0;        ///< mapped memory: of cuMemCreate

  std::uint64_t end() const { return begin + size; }
  bool host() const { return kind == MemoryKind::hostAllocated || kind == MemoryKind::hostRegistered; }
};

/// The process's allocations by address.
class Allocations {
 public:
  static Allocations& all();

  void add(Allocation allocation);
  /// The allocation around an address.
  std::optional<Allocation> find(std::uint64_t address) const;
  /// Takes out the allocation that begins at `address` when accept(allocation) says so.
  template <class Accept>
  std::optional<Allocation> take(std::uint64_t address, Accept&& accept) {
    const std::lock_guard lock(mutex_);
    const auto found = byAddress_.find(address);
    if (found == byAddress_.end() || !accept(found->second)) return std::nullopt;
    Allocation taken = std::move(found->second);
    byAddress_.erase(found);
    changed();
    return taken;
  }
  /// Changes the allocation around `address` in place; false when there is none.
  template <class Change>
  bool update(std::uint64_t address, Change&& change) {
    const std::lock_guard lock(mutex_);
    Allocation* allocation = around(address);
    if (allocation == nullptr) return false;
    change(*allocation);
    changed();
    return true;
  }
  template <class Visit>
  void each(Visit&& visit) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [begin, allocation] : byAddress_) visit(allocation);
  }
  /// True when [begin, begin + size) touches an allocation.
  bool overlaps(std::uint64_t begin, std::uint64_t size) const;
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Changes who may reach what (peers of contexts, access to pools): those are read only under the same lock.
  template <class Change>
  void changeAccess(Change&& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed();
  }

 private:
  /// Makes every view be built anew.
  void changed() { version_.fetch_add(1, std::memory_order_release); }
  const Allocation* around(std::uint64_t address) const;
  Allocation* around(std::uint64_t address) { return const_cast<Allocation*>(std::as_const(*this).around(address)); }

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Allocation> byAddress_;
  std::atomic<std::uint64_t> version_{1};
  std::uint64_t nextId_ = 1;
};

/// What kernels of one context may reach. Each thread keeps the sorted ranges it last saw, so an answer costs one atomic load and a
/// binary search while no memory comes or goes.
class ContextMemory final : public AddressSpace {
 public:
  explicit ContextMemory(const Context& context) : context_(context) {}

  bool contains(std::uint64_t address, std::uint64_t bytes) const override;
  std::array<std::uint64_t, 2> around(std::uint64_t address) const override;

 private:
  struct Ranges {
    std::uint64_t version = 0;
    std::vector<std::array<std::uint64_t, 2>> sorted;
  };
  const Ranges& ranges() const;
  std::shared_ptr<const Ranges> build() const;

  const Context& context_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Ranges> latest_;
};

}  // namespace simulator
