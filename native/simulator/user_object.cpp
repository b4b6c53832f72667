#include "native/simulator/user_object.h"

#include <climits>

#include "native/simulator/driver_call.h"
#include "native/simulator/handles.h"
#include "native/simulator/helper_threads.h"

namespace simulator {

bool UserObject::retain(unsigned count) {
  const std::lock_guard lock(mutex_);
  if (references_ == 0) return false;
  references_ += count;
  return true;
}

bool UserObject::release(unsigned count) {
  const std::lock_guard lock(mutex_);
  if (references_ < count) return false;
  references_ -= count;
  if (references_ > 0) return true;
  Handles<UserObject>::all().remove(this);
  runOnHelperThread([destroy = destroy_, data = data_] {
    const HostFunctionScope scope;
    destroy(data);
  });
  return true;
}

UserReferences::~UserReferences() {
  for (const auto& [object, count] : counts_) {
    for (auto left = count; left > 0;) {
      const auto some = static_cast<unsigned>(left < INT_MAX ? left : INT_MAX);
      object->release(some);
      left -= some;
    }
  }
}

bool UserReferences::retain(const std::shared_ptr<UserObject>& object, unsigned count, bool move) {
  if (!move && !object->retain(count)) return false;
  counts_[object] += count;
  return true;
}

bool UserReferences::release(const std::shared_ptr<UserObject>& object, unsigned count) {
  const auto found = counts_.find(object);
  if (found == counts_.end() || found->second < count) return false;
  found->second -= count;
  if (found->second == 0) counts_.erase(found);
  return object->release(count);
}

std::shared_ptr<UserObject> findUserObject(CUuserObject handle, unsigned count) {
  return count == 0 || count > INT_MAX ? nullptr : Handles<UserObject>::all().find(handle);
}

void UserReferences::copy(const UserReferences& other) {
  for (const auto& [object, count] : other.counts_) {
    if (object->retain(1)) counts_[object] += 1;
  }
}

}  // namespace simulator

using namespace simulator;

namespace {

/// Runs body(UserObject&) on the object that a handle names.
template <class Body>
CUresult onUserObject(CUuserObject handle, unsigned count, Body&& body) {
  return inDriver([&]() -> CUresult {
    const auto object = findUserObject(handle, count);
    return object != nullptr && body(*object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

DRIVER_CALL cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy,
                               unsigned int initialRefcount, unsigned int flags) {
  return inDriver([&]() -> CUresult {
    if (object_out == nullptr || destroy == nullptr || initialRefcount == 0 ||
        initialRefcount > INT_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
      return CUDA_ERROR_INVALID_VALUE;
    auto object = std::make_shared<UserObject>(destroy, ptr, initialRefcount);
    *object_out = handleOf<CUuserObject>(object.get());
    Handles<UserObject>::all().add(std::move(object));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuUserObjectRetain(CUuserObject object, unsigned int count) {
  return onUserObject(object, count, [&](UserObject& found) { return found.retain(count); });
}

DRIVER_CALL cuUserObjectRelease(CUuserObject object, unsigned int count) {
  return onUserObject(object, count, [&](UserObject& found) { return found.release(count); });
}
