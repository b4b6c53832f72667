// How the worker reaches NVML, whose interface is declared in nvml/abi.h: driver 510 and newer.
#pragma once

#include <dlfcn.h>

#include <vector>

#include "nvml/abi.h"

namespace worker::nvml {

using namespace ::nvml;

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
