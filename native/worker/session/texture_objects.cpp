#include "native/worker/session/texture_objects.h"

#include <iterator>

namespace worker {

/// The entry's address is what the handle stands for: the values of two contexts may be equal.
void TextureObjects::created(wire::HandleKind kind, CUcontext context, std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  const auto [object, isNew] = objects_.try_emplace(Key{context, kind, value}, 0);
  if (isNew) object->second = handles_.add(kind, &object->second);
}

bool TextureObjects::lives(wire::HandleKind kind, CUcontext context, std::uint64_t value) const {
  const std::lock_guard lock(mutex_);
  return objects_.contains(Key{context, kind, value});
}

void TextureObjects::destroyed(wire::HandleKind kind, CUcontext context, std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  const auto object = objects_.find(Key{context, kind, value});
  if (object != objects_.end()) forget(object);
}

void TextureObjects::ended(CUcontext context) {
  const std::lock_guard lock(mutex_);
  auto object = objects_.lower_bound(Key{context, wire::HandleKind::none, 0});
  while (object != objects_.end() && std::get<CUcontext>(object->first) == context)
    forget(object++);
}

void TextureObjects::forget(Objects::iterator object) {
  handles_.remove(object->second);
  objects_.erase(object);
}

}  // namespace worker
