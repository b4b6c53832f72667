// The objects that the handles of an operation name.
#pragma once

#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/multiprocessor.h"

namespace simulator::ptx {

inline const Texture* findImage(const Images& images, std::uint64_t handle, const Texture*) {
  const auto found = images.textures.find(handle);
  return found == images.textures.end() ? nullptr : &found->second;
}
inline const Image* findImage(const Images& images, std::uint64_t handle, const Image*) {
  const auto found = images.surfaces.find(handle);
  return found == images.surfaces.end() ? nullptr : &found->second;
}

/// Looks handles up, and keeps the last one: the lanes of a warp mostly name the same.
template <class Object>
class Known {
 public:
  /// Null if the lane's handle names no object.
  const Object* find(Warp& w, const Operation* op, unsigned lane) {
    const std::uint64_t handle = w.at<std::uint64_t>(op->slot[Operation::kAddress])[lane];
    if (asked_ && handle == handle_) return object_;
    const Images* images = w.block->run->environment.images;
    asked_ = true;
    handle_ = handle;
    object_ = images == nullptr ? nullptr
                                : findImage(*images, handle, static_cast<const Object*>(nullptr));
    return object_;
  }

 private:
  bool asked_ = false;
  std::uint64_t handle_ = 0;
  const Object* object_ = nullptr;
};

/// Ends the launch, with a report if the check for memory is on.
inline const Operation* faultOfImage(Warp& w, const Operation* op, unsigned lane, CUresult fault,
                                     const std::string& what) {
  if (checks().memory) w.block->run->checker->image(w, lane, op, what);
  return w.fault(fault, op);
}

inline const Operation* unknownImage(Warp& w, const Operation* op, unsigned lane,
                                     const char* kind) {
  const std::uint64_t handle = w.at<std::uint64_t>(op->slot[Operation::kAddress])[lane];
  return faultOfImage(w, op, lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                      hexadecimal(handle) + " names no " + kind);
}

}  // namespace simulator::ptx
