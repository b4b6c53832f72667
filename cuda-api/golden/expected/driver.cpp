// Generated. Do not edit, change cuda-api/.
#include "driver.h"

#include <dlfcn.h>

namespace worker {

namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool load(void* library, Driver& driver) {
  bool found = false;
  found |= find(library, "cuToyOpen_v2", driver.cuToyOpen_v2);
  found |= find(library, "cuToyClose", driver.cuToyClose);
  found |= find(library, "cuToyWait", driver.cuToyWait);
  found |= find(library, "cuToyMark", driver.cuToyMark);
  found |= find(library, "cuToyFill", driver.cuToyFill);
  found |= find(library, "cuToyCopy", driver.cuToyCopy);
  found |= find(library, "cuToyPaint", driver.cuToyPaint);
  found |= find(library, "cuToyPlay", driver.cuToyPlay);
  found |= find(library, "cuToyLoad", driver.cuToyLoad);
  found |= find(library, "cuToyPart", driver.cuToyPart);
  found |= find(library, "cuToyGather", driver.cuToyGather);
  found |= find(library, "cuToyAsk", driver.cuToyAsk);
  found |= find(library, "cuToyInit", driver.cuToyInit);
  return found;
}

}  // namespace worker
