// How many references to each user object the program owns itself. The driver does not check it.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace worker {

/// Thread-safe. Objects are known by their handles.
class UserObjects {
 public:
  void add(std::uint64_t object, std::uint64_t references) {
    const std::lock_guard lock(mutex_);
    owned_[object] = references;
  }
  void remove(std::uint64_t object) {
    const std::lock_guard lock(mutex_);
    owned_.erase(object);
  }
  void retain(std::uint64_t object, std::uint64_t references) {
    const std::lock_guard lock(mutex_);
    owned_[object] += references;
  }
  /// False if the program owns fewer references.
  bool release(std::uint64_t object, std::uint64_t references) {
    const std::lock_guard lock(mutex_);
    const auto found = owned_.find(object);
    if (found == owned_.end() || found->second < references) return false;
    found->second -= references;
    return true;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> owned_;
};

}  // namespace worker
