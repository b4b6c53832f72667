// Launches as before CUDA 4: the function carries its block shape and its arguments.
#include <cstring>

#include "interposer/code/kernels.h"
#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

/// The most that a launch may take (driver API 13.0).
constexpr std::size_t kMaxArgumentBytes = 32764;

/// Runs change(LegacyLaunch&) on what the function carries.
template <class Change>
CUresult changeLaunch(CUfunction function, Change change) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  Kernel* const kernel = findKernel(function);
  if (kernel == nullptr) return unknownHandle();
  const std::lock_guard lock(kernel->mutex);
  return change(kernel->legacyLaunch);
}

CUresult launchGrid(CUfunction function, int width, int height, CUstream stream) {
  LegacyLaunch launch;
  const CUresult status = changeLaunch(function, [&](const LegacyLaunch& current) {
    launch = current;
    return CUDA_SUCCESS;
  });
  if (status != CUDA_SUCCESS) return status;
  std::size_t bytes = launch.arguments.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, launch.arguments.data(),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  return interposer::cuLaunchKernel(function, width, height, 1, launch.block[0], launch.block[1],
                                    launch.block[2], launch.sharedBytes, stream, nullptr, extra);
}

}  // namespace

CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z) {
  return changeLaunch(hfunc, [&](LegacyLaunch& launch) {
    launch.block = {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes) {
  return changeLaunch(hfunc, [&](LegacyLaunch& launch) {
    launch.sharedBytes = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes) {
  if (numbytes > kMaxArgumentBytes) return CUDA_ERROR_INVALID_VALUE;
  return changeLaunch(hfunc, [&](LegacyLaunch& launch) {
    launch.arguments.resize(numbytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuParamSetv(CUfunction hfunc, int offset, void* ptr, unsigned int numbytes) {
  if (offset < 0 || std::size_t{numbytes} + static_cast<std::size_t>(offset) > kMaxArgumentBytes ||
      (ptr == nullptr && numbytes > 0))
    return CUDA_ERROR_INVALID_VALUE;
  return changeLaunch(hfunc, [&](LegacyLaunch& launch) {
    const std::size_t end = static_cast<std::size_t>(offset) + numbytes;
    if (launch.arguments.size() < end) launch.arguments.resize(end);
    if (numbytes > 0) std::memcpy(launch.arguments.data() + offset, ptr, numbytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value) {
  return interposer::cuParamSetv(hfunc, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction hfunc, int offset, float value) {
  return interposer::cuParamSetv(hfunc, offset, &value, sizeof value);
}

CUresult cuLaunch(CUfunction f) { return launchGrid(f, 1, 1, nullptr); }

CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height) {
  return launchGrid(f, grid_width, grid_height, nullptr);
}

CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream) {
  return launchGrid(f, grid_width, grid_height, hStream);
}

}  // namespace interposer
