// Maps handles, the numbers by which the program knows the worker's objects. The handle of a
// destroyed object stays invalid, because its slot's generation has advanced.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace wire {

/// Kinds of handles. They share one number space, so a stream passed as an event is refused.
/// Functions and kernels are looked up together where CUDA accepts both.
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
  resourceDescription,
  genericAllocation,
  textureReference,
  surfaceReference,
  count
};

/// The kind in the handle's bits; only the table knows whether the handle is valid. `none` if it is
/// malformed.
HandleKind handleKind(std::uint64_t handle);

/// Eight bits that the handle of a context has in common with those of what ends with it. Two
/// contexts rarely have the same. 0: the object ends with no context.
std::uint8_t contextBits(std::uint64_t handle);

/// The handle of a device's primary context, which the client knows before the context exists. 0
/// for ordinals from 64 on.
std::uint64_t primaryContextHandle(int ordinal);

/// Thread-safe; find() takes no lock. A handle is positive as a signed number, even (programs pack
/// flags into the lowest bit of a stream), never one of CUDA's reserved small ones, and no address,
/// so that one that is followed faults.
class HandleTable {
 public:
  /// `shown`: updated with the number of live handles.
  explicit HandleTable(std::atomic<std::uint32_t>* shown = nullptr);
  ~HandleTable();
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  /// Returns the handle of `object`; the same one while the object lives. It ends with `parent` (a
  /// handle, or 0) and with `context`. Returns 0 if the parent has ended, `object` is null, or 4
  /// million objects live.
  std::uint64_t add(HandleKind kind, void* object, std::uint64_t parent = 0,
                    std::uint64_t context = 0);
  /// The root of the handle's chain of parents; the handle itself if it has no parent; 0 if it has
  /// ended.
  std::uint64_t rootOf(std::uint64_t handle) const;
  /// The handle that this one ends with; 0 if it has none, or has ended.
  std::uint64_t parentOf(std::uint64_t handle) const;
  /// Whether the handle is `whole`, or ends with it by its chain of parents.
  bool isPartOf(std::uint64_t handle, std::uint64_t whole) const;
  /// The object's handle; 0 if it has none.
  std::uint64_t handleOf(HandleKind kind, void* object) const;
  /// Sets the object of a fixed handle (a primary context). Null clears it, and ends the handles
  /// that depend on it.
  void bind(std::uint64_t handle, void* object);
  /// The object; null if the handle is of another kind or has ended.
  void* find(HandleKind kind, std::uint64_t handle) const;
  /// The live objects of a kind.
  std::vector<void*> objects(HandleKind kind) const;
  /// Ends a handle and those that depend on it. Does nothing if it has ended already.
  void remove(std::uint64_t handle);
  /// Whether the object ends with the context.
  bool endsWith(void* object, std::uint64_t context) const;
  /// Number of live handles.
  std::size_t size() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kChunkSlots = 1024;
  static constexpr std::size_t kChunks = 4096;

  struct Slot {
    std::atomic<std::uint64_t> handle{0};  ///< 0: free
    std::atomic<void*> object{nullptr};
    std::uint32_t generation = 0;  ///< generation of the last handle of this slot
    std::uint64_t context = 0;     ///< handle of the context that it ends with
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
  std::atomic<Slot*>
      chunks_[kChunks]{};   ///< owned; a chunk never moves, so that find() needs no lock
  std::uint32_t used_ = 0;  ///< slots ever used, those of primary contexts first
  std::vector<std::uint32_t> free_;
  std::unordered_map<Key, std::uint64_t, KeyHash> handles_;
  std::atomic<std::uint32_t> size_{0};  ///< the count if no `shown` is given
  std::atomic<std::uint32_t>& shown_;
};

}  // namespace wire
