// Live objects by handle, which is the object's address. Unknown and destroyed handles are not
// found, so calls return CUDA_ERROR_INVALID_HANDLE instead of following a dangling pointer.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace simulator {

template <class Object>
class Handles {
 public:
  /// The only table of this type. Never destroyed, because stream threads may outlive static
  /// destructors.
  static Handles& all() {
    static Handles& table = *new Handles;
    return table;
  }

  void add(std::shared_ptr<Object> object) {
    const std::unique_lock lock(mutex_);
    const void* handle = object.get();
    objects_.emplace(handle, std::move(object));
  }
  /// Adds another handle of an object.
  void addAs(const void* handle, std::shared_ptr<Object> object) {
    const std::unique_lock lock(mutex_);
    objects_.emplace(handle, std::move(object));
  }
  std::shared_ptr<Object> find(const void* handle) const {
    const std::shared_lock lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  /// Removes and returns the object, which ends with its last user. Null if the handle is unknown.
  std::shared_ptr<Object> remove(const void* handle) {
    const std::unique_lock lock(mutex_);
    auto node = objects_.extract(handle);
    return node ? std::move(node.mapped()) : nullptr;
  }
  template <class Predicate>
  std::vector<std::shared_ptr<Object>> where(Predicate&& predicate) const {
    const std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<Object>> found;
    for (const auto& [key, object] : objects_) {
      if (predicate(*object)) found.push_back(object);
    }
    return found;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Object>> objects_;
};

/// The opaque CUDA handle of an object.
template <class Handle, class Object>
Handle handleOf(const Object* object) {
  return reinterpret_cast<Handle>(const_cast<Object*>(object));
}

}  // namespace simulator
