// The code that this process has loaded, by handle, with the owners of each object.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

namespace interposer {

struct Kernel;

/// The owners of an object, by handle; 0: none. It ends with either.
struct CodeOwners {
  std::uint64_t code = 0;  ///< a library, module or kernel
  std::uint64_t context = 0;
};

/// Thread-safe.
class LoadedCode {
 public:
  using Ended = std::unordered_map<std::uint64_t, std::shared_ptr<Kernel>>;

  /// Adds an object; `kernel` is null for a module. Returns the existing record, if there is one.
  std::shared_ptr<Kernel> add(std::uint64_t handle, CodeOwners owners,
                              std::shared_ptr<Kernel> kernel);
  /// Null if the handle is unknown.
  std::shared_ptr<Kernel> find(std::uint64_t handle) const;
  /// Whether it is a module of the context, and not one of a library.
  bool isModuleOf(std::uint64_t handle, std::uint64_t context) const;
  void eachKernel(const std::function<void(Kernel&)>& visit) const;

  /// Removes and returns the library, module or context, and all that ends with it.
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
