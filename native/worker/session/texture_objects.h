// Texture and surface objects that live. The program knows them by the driver's own values, because
// kernels receive these among their parameters. Each context has values of its own.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "cuda_abi.h"
#include "wire/handle_table.h"

namespace worker {

/// Thread-safe. An object counts as a handle, though the program never sees that handle.
class TextureObjects {
 public:
  explicit TextureObjects(wire::HandleTable& handles) : handles_(handles) {}

  /// `kind`: texture or surface.
  void created(wire::HandleKind kind, CUcontext context, std::uint64_t value);
  bool lives(wire::HandleKind kind, CUcontext context, std::uint64_t value) const;
  void destroyed(wire::HandleKind kind, CUcontext context, std::uint64_t value);
  /// All objects of the context have ended.
  void ended(CUcontext context);

 private:
  using Key = std::tuple<CUcontext, wire::HandleKind, std::uint64_t>;
  using Objects = std::map<Key, std::uint64_t>;
  void forget(Objects::iterator object);

  wire::HandleTable& handles_;
  mutable std::mutex mutex_;
  Objects objects_;  ///< with their handles
};

}  // namespace worker
