// All memory that the driver has allocated in this process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace simulator {

struct Context;
class Device;
struct GraphMemory;
struct Pool;

enum class MemoryKind {
  device,
  pool,
  heap,
  module,
  managed,
  managedVariable,
  mapped,
  imported,
  graph,
  array,
  hostAllocated,
  hostRegistered
};

struct Allocation {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;  ///< bytes that were requested
  MemoryKind kind = MemoryKind::device;
  /// the context that it ends with; null for pool and mapped memory, which belong to the device
  Context* context = nullptr;
  Device* device = nullptr;  ///< the device whose memory it takes; null for host memory
  unsigned flags = 0;        ///< host memory: flags of cuMemHostAlloc or cuMemHostRegister
  std::uint64_t id = 0;      ///< CU_POINTER_ATTRIBUTE_BUFFER_ID
  bool synchronous = false;  ///< CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
  bool freeing = false;      ///< cuMemFreeAsync was called: a second free is an error
  bool accessible = true;    ///< false: addresses without memory, of an allocation node of a graph
  std::weak_ptr<GraphMemory> graph;  ///< memory of a graph
  std::shared_ptr<Pool> pool;
  /// other devices that may access it: mapped memory (cuMemSetAccess) and memory of graphs
  std::set<const Device*> access;
  std::uint64_t handle = 0;  ///< mapped memory: handle of cuMemCreate
  unsigned handleTypes = 0;  ///< by which other processes may get it

  std::uint64_t end() const { return begin + size; }
  bool managed() const {
    return kind == MemoryKind::managed || kind == MemoryKind::managedVariable;
  }
  /// Memory of a pool of another process.
  bool importedOfPool() const { return kind == MemoryKind::imported && pool != nullptr; }
  bool host() const {
    return kind == MemoryKind::hostAllocated || kind == MemoryKind::hostRegistered;
  }
  /// False for mapped memory that no device may access (cuMemSetAccess).
  bool granted() const { return kind != MemoryKind::mapped || !access.empty(); }
  /// False for registered pages that the host process itself may not be able to write.
  bool writable() const;
};

/// The process's allocations by address. Thread-safe.
class Allocations {
 public:
  static Allocations& all();

  void add(Allocation allocation);
  /// The allocation that contains the address.
  std::optional<Allocation> find(std::uint64_t address) const;
  /// Removes and returns the allocation at `address` if accept(allocation) is true.
  template <class Accept>
  std::optional<Allocation> take(std::uint64_t address, Accept&& accept) {
    const std::lock_guard lock(mutex_);
    const auto found = byAddress_.find(address);
    if (found == byAddress_.end() || !accept(found->second)) return std::nullopt;
    Allocation taken = std::move(found->second);
    byAddress_.erase(found);
    freed_.push_back({taken.begin, taken.end()});
    if (freed_.size() > kFreedRemembered) freed_.pop_front();
    changed();
    return taken;
  }
  /// Changes the allocation that contains `address`. False if there is none.
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
  /// Whether [begin, begin + size) overlaps an allocation.
  bool overlaps(std::uint64_t begin, std::uint64_t size) const;
  /// For an address outside of all allocations: describes the nearest one, or the freed one that
  /// contained it. Empty if none is near.
  std::string describe(std::uint64_t address) const;
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Changes access rights (peers of contexts, access to pools), which are read only under the same
  /// lock.
  template <class Change>
  void changeAccess(Change&& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed();
  }

 private:
  /// Invalidates all cached views.
  void changed() { version_.fetch_add(1, std::memory_order_release); }
  const Allocation* around(std::uint64_t address) const;
  Allocation* around(std::uint64_t address) {
    return const_cast<Allocation*>(std::as_const(*this).around(address));
  }

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Allocation> byAddress_;
  std::atomic<std::uint64_t> version_{1};
  std::uint64_t nextId_ = 1;
  static constexpr std::size_t kFreedRemembered = 1024;
  std::deque<std::array<std::uint64_t, 2>> freed_;  ///< the last freed ranges, for describe()
};

}  // namespace simulator
