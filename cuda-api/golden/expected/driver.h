// Generated. Do not edit, change cuda-api/.
// The driver, real or simulated, as the worker reaches it: by dlopen. A function that it lacks is null.
#pragma once

#include "cuda_abi.h"

namespace worker {

struct Driver {
  decltype(&::cuToyOpen_v2) cuToyOpen_v2 = nullptr;
  decltype(&::cuToyClose) cuToyClose = nullptr;
  decltype(&::cuToyWait) cuToyWait = nullptr;
  decltype(&::cuToyMark) cuToyMark = nullptr;
  decltype(&::cuToyFill) cuToyFill = nullptr;
  decltype(&::cuToyCopy) cuToyCopy = nullptr;
  decltype(&::cuToyPaint) cuToyPaint = nullptr;
  decltype(&::cuToyPlay) cuToyPlay = nullptr;
  decltype(&::cuToyLoad) cuToyLoad = nullptr;
  decltype(&::cuToyPart) cuToyPart = nullptr;
  decltype(&::cuToyGather) cuToyGather = nullptr;
  decltype(&::cuToyAsk) cuToyAsk = nullptr;
  decltype(&::cuToyInit) cuToyInit = nullptr;
};

/// Calls `visit` with each function of the table, as a pointer to its member, and its name.
template <class Visit>
void forEachFunction(Visit visit) {
  visit.template operator()<&Driver::cuToyOpen_v2>("cuToyOpen_v2");
  visit.template operator()<&Driver::cuToyClose>("cuToyClose");
  visit.template operator()<&Driver::cuToyWait>("cuToyWait");
  visit.template operator()<&Driver::cuToyMark>("cuToyMark");
  visit.template operator()<&Driver::cuToyFill>("cuToyFill");
  visit.template operator()<&Driver::cuToyCopy>("cuToyCopy");
  visit.template operator()<&Driver::cuToyPaint>("cuToyPaint");
  visit.template operator()<&Driver::cuToyPlay>("cuToyPlay");
  visit.template operator()<&Driver::cuToyLoad>("cuToyLoad");
  visit.template operator()<&Driver::cuToyPart>("cuToyPart");
  visit.template operator()<&Driver::cuToyGather>("cuToyGather");
  visit.template operator()<&Driver::cuToyAsk>("cuToyAsk");
  visit.template operator()<&Driver::cuToyInit>("cuToyInit");
}

/// Finds every function in `library`, as dlopen gave it. False when it has none of them.
bool load(void* library, Driver& driver);

}  // namespace worker
