// Generated. Do not edit, change cuda-api/.
// The driver, real or simulated, as the worker reaches it: by dlopen. A function that it lacks is null.
#pragma once

#include "cuda_abi.h"

namespace worker {

struct Driver {
  decltype(&::cuToyOpen_v2) cuToyOpen_v2 = nullptr;
  decltype(&::cuToyClose) cuToyClose = nullptr;
  decltype(&::cuToyWait) cuToyWait = nullptr;
  decltype(&::cuToyFill) cuToyFill = nullptr;
  decltype(&::cuToyCopy) cuToyCopy = nullptr;
  decltype(&::cuToyPaint) cuToyPaint = nullptr;
  decltype(&::cuToyLoad) cuToyLoad = nullptr;
  decltype(&::cuToyPart) cuToyPart = nullptr;
  decltype(&::cuToyGather) cuToyGather = nullptr;
  decltype(&::cuToyInit) cuToyInit = nullptr;
};

/// Finds every function in `library`, as dlopen gave it. False when it has none of them.
bool load(void* library, Driver& driver);

}  // namespace worker
