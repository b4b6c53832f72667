// The worker's objects as the program sees them: a handle is a number that means nothing elsewhere. A handle of a destroyed object
// stays inert: its slot's generation has moved on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace wire {

/// Kinds share one number space, so that a stream passed as an event is refused. Function and kernel are looked up together where
/// CUDA accepts either.
enum class HandleKind : std::uint8_t {
  none,
  context,
  module,
  function,
  library,
  kernel,
  stream,
  event,
  memoryPool,
  linkState,
  graph,
  graphExec,
  graphNode,
  array,
  mipmappedArray,
  texture,
  surface,
  userObject,
  greenContext,
  genericAllocation,
  count
};

/// The kind that a handle claims to be; only the table knows whether that is true. `none` for what was never a handle.
HandleKind handleKind(std::uint64_t handle);

/// The handle of a device's primary context: known to the client before the worker has made the context. 0 from ordinal 64 on.
std::uint64_t primaryContextHandle(int ordinal);

/// Thread-safe; find() takes no lock. A handle is positive as a signed number, even (programs pack flags into the lowest bit of a
/// stream), never one of CUDA's reserved small ones, and no address, so that one that is followed faults.
class HandleTable {
 public:
  /// `shown`, if given, always has the number of handles that live.
  explicit HandleTable(std::atomic<std::uint32_t>* shown = nullptr);
  ~HandleTable();
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  /// The handle of `object`; the same one while the object lives. `parent` (a handle, or 0) ends it with itself, and so does the `context`
  /// that it was made in.
  /// 0 when the parent has ended already, `object` is null, or 4 million objects live.
  std::uint64_t add(HandleKind kind, void* object, std::uint64_t parent = 0, std::uint64_t context = 0);
  /// The handle that an object has; 0 when it has none.
  std::uint64_t handleOf(HandleKind kind, void* object) const;
  /// Gives a handle that is fixed beforehand (a primary context) its object; null takes it away, and what ends with it.
  void bind(std::uint64_t handle, void* object);
  /// The object, or null when the handle is not one of this kind or has ended.
  void* find(HandleKind kind, std::uint64_t handle) const;
  /// Ends a handle and what ends with it. Nothing happens when it has ended already.
  void remove(std::uint64_t handle);
  /// How many live.
  std::size_t size() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kChunkSlots = 1024;
  static constexpr std::size_t kChunks = 4096;

  struct Slot {
    std::atomic<std::uint64_t> handle{0};  ///< 0: free
    std::atomic<void*> object{nullptr};
    std::uint32_t generation = 0;  ///< of the last handle given out
    std::uint64_t context = 0;     ///< the handle of the one that it ends with
    std::uint32_t parent = kNone, firstChild = kNone, nextSibling = kNone, previousSibling = kNone;
  };
  struct Key {
    void* object;
    HandleKind kind;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  Slot* slotOf(std::uint64_t handle) const;
  Slot& slot(std::uint32_t index) const;
  std::uint32_t freeSlot();
  void reachSlot(std::uint32_t index);
  void show();
  void occupy(std::uint32_t index, std::uint64_t handle, void* object);
  void link(std::uint32_t index, std::uint32_t parent);
  void unlink(std::uint32_t index);
  void vacate(std::uint32_t index);
  void end(std::uint32_t index);
  void endTree(std::uint32_t index);

  mutable std::mutex mutex_;
  std::atomic<Slot*> chunks_[kChunks]{};  ///< owned; a chunk never moves, so that find() needs no lock
  std::uint32_t used_ = 0;                ///< slots ever used, those of primary contexts first
  std::vector<std::uint32_t> free_;
  std::unordered_map<Key, std::uint64_t, KeyHash> handles_;
  std::atomic<std::uint32_t> size_{0};  ///< of handles_, where none is given
  std::atomic<std::uint32_t>& shown_;
};

}  // namespace wire
