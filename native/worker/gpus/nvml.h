// The part of NVML's interface that the worker uses, without NVIDIA's header: the layouts are
// those of driver 510 and newer.
#pragma once

#include <dlfcn.h>

#include <vector>

namespace worker::nvml {

using Device = void*;
using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kInsufficientSize = 7;
inline constexpr unsigned long long kNotAvailable = ~0ULL;

struct ProcessInfo {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long usedGpuMemory;  ///< bytes, or kNotAvailable
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};
using Processes = Return (*)(Device, unsigned* count, ProcessInfo*);

/// False, and a null function, when the library lacks it.
template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// The processes on a GPU. Empty when NVML does not tell, or `ask` is null: not every driver lists
/// clients of MPS.
std::vector<ProcessInfo> list(Processes ask, Device device);

}  // namespace worker::nvml
