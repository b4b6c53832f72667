// User objects: a destructor of the program that runs when the last reference ends.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "cuda_abi.h"

namespace simulator {

/// Thread-safe.
class UserObject {
 public:
  UserObject(CUhostFn destroy, void* data, unsigned references)
      : destroy_(destroy), data_(data), references_(references) {}

  /// False if all references have ended.
  bool retain(unsigned count);
  /// Starts the destructor on a helper thread if no reference is left. False if there are fewer
  /// references.
  bool release(unsigned count);

 private:
  const CUhostFn destroy_;
  void* const data_;
  std::mutex mutex_;
  unsigned long long references_;
};

/// The object of a handle; null if there is none, or `count` is no number of references.
std::shared_ptr<UserObject> findUserObject(CUuserObject handle, unsigned count);

/// References that a graph owns. Guarded by graphMutex(), but for the destructor.
class UserReferences {
 public:
  UserReferences() = default;
  UserReferences(const UserReferences&) = delete;
  UserReferences& operator=(const UserReferences&) = delete;
  ~UserReferences();

  /// `move`: the references were the caller's.
  bool retain(const std::shared_ptr<UserObject>& object, unsigned count, bool move);
  bool release(const std::shared_ptr<UserObject>& object, unsigned count);
  /// Retains what `other` has.
  void copy(const UserReferences& other);

 private:
  std::map<std::shared_ptr<UserObject>, unsigned long long> counts_;
};

}  // namespace simulator
