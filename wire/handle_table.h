// The worker's objects as the program sees them: a handle is a number that means nothing elsewhere. A handle of a destroyed object
// stays inert: its slot's generation has moved on.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace wire {

/// Kinds share one number space, so that a stream passed as an event is refused. Function and kernel are looked up together where
/// CUDA accepts either.
enum class HandleKind : std::uint8_t {
  none, context, module, function, library, kernel, stream, event, memoryPool, linkState, graph, graphExec, graphNode, array, mipmappedArray,
  texture, surface, userObject, greenContext, genericAllocation, count
};

/// The kind that a handle claims to be; only the table knows whether that is true.
HandleKind handleKind(std::uint64_t handle);

/// The handle of a device's primary context: known to the client before the worker has made the context.
std::uint64_t primaryContextHandle(int ordinal);

/// Thread-safe.
class HandleTable {
 public:
  /// The handle of `object`; the same one while the object lives. `parent` (a handle, or 0) ends it with itself.
  std::uint64_t add(HandleKind kind, void* object, std::uint64_t parent = 0);
  /// Gives a handle that is fixed beforehand (a primary context) its object; null takes it away, and its children with it.
  void bind(std::uint64_t handle, void* object);
  /// The object, or null when the handle is not one of this kind or has ended.
  void* find(HandleKind kind, std::uint64_t handle) const;
  /// Ends a handle and its children. Nothing happens when it has ended already.
  void remove(std::uint64_t handle);
  std::size_t size() const;

 private:
  struct Slot {
    void* object = nullptr;
    std::uint64_t parent = 0;
    std::uint32_t generation = 0;
    HandleKind kind = HandleKind::none;
    std::vector<std::uint64_t> children;
  };
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint64_t, std::uint64_t> handles_;  ///< object and kind -> handle
};

}  // namespace wire
