// The code that this process has loaded, by the worker's handles: kernels and functions with what is known of them, and what ends with
// what.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

namespace interposer {

struct Kernel;

/// What an object ends with, each a handle, or 0.
struct CodeOwners {
  std::uint64_t code = 0;  ///< a library, module or kernel
  std::uint64_t context = 0;
};

/// Thread-safe.
class LoadedCode {
 public:
  using Ended = std::unordered_map<std::uint64_t, std::shared_ptr<Kernel>>;

  /// Of a module, `kernel` is null. Returns what is there already if so.
  std::shared_ptr<Kernel> add(std::uint64_t handle, CodeOwners owners, std::shared_ptr<Kernel> kernel);
  /// Null when it is not there.
  std::shared_ptr<Kernel> find(std::uint64_t handle) const;
  void eachKernel(const std::function<void(Kernel&)>& visit) const;

  /// A library, module or context has ended: forgets all that has ended with it, and returns that, itself among it.
  Ended end(std::uint64_t handle);

 private:
  struct Object {
    CodeOwners owners;
    std::shared_ptr<Kernel> kernel;
  };
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, Object> objects_;
};

}  // namespace interposer
