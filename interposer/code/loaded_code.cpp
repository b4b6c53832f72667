#include "interposer/code/loaded_code.h"

#include <mutex>
#include <utility>

namespace interposer {

std::shared_ptr<Kernel> LoadedCode::add(std::uint64_t handle, CodeOwners owners,
                                        std::shared_ptr<Kernel> kernel) {
  const std::lock_guard lock(mutex_);
  return objects_.try_emplace(handle, Object{owners, std::move(kernel)}).first->second.kernel;
}

std::shared_ptr<Kernel> LoadedCode::find(std::uint64_t handle) const {
  const std::shared_lock lock(mutex_);
  const auto found = objects_.find(handle);
  return found != objects_.end() ? found->second.kernel : nullptr;
}

bool LoadedCode::isModuleOf(std::uint64_t handle, std::uint64_t context) const {
  const std::shared_lock lock(mutex_);
  const auto found = objects_.find(handle);
  if (found == objects_.end() || found->second.kernel != nullptr) return false;
  const CodeOwners& owners = found->second.owners;
  return owners.code == 0 && owners.context == context;
}

void LoadedCode::eachKernel(const std::function<void(Kernel&)>& visit) const {
  const std::shared_lock lock(mutex_);
  for (const auto& [handle, object] : objects_) {
    if (object.kernel != nullptr) visit(*object.kernel);
  }
}

/// Iterates until nothing more ends: a library has modules, which have functions. Unloading is
/// rare, so several scans are cheap enough.
LoadedCode::Ended LoadedCode::end(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  Ended ended;
  const auto endsNow = [&](auto& entry) {
    auto& [object, content] = entry;
    if (!ended.contains(content.owners.code) && content.owners.context != handle) return false;
    ended[object] = std::move(content.kernel);
    return true;
  };
  const auto own = objects_.extract(handle);
  ended[handle] = own.empty() ? nullptr : own.mapped().kernel;
  while (std::erase_if(objects_, endsNow) > 0) continue;
  return ended;
}

}  // namespace interposer
