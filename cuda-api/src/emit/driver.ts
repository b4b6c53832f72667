import type { Specification } from '../specification.js';
import { BANNER } from './text.js';

/** driver.h: the driver's functions that the worker uses. */
export function emitDriverHeader({ driverSymbols }: Specification): string {
  return `${BANNER}// The driver, real or simulated, as the worker reaches it: by dlopen. A \
function that it lacks is null.
#pragma once

#include "cuda_abi.h"

namespace worker {

struct Driver {
${driverSymbols.map((name) => `  decltype(&::${name}) ${name} = nullptr;`).join('\n')}
};

/// Calls \`visit\` with each function of the table, as a pointer to its member, and its name.
template <class Visit>
void forEachFunction(Visit visit) {
${driverSymbols.map(visit).join('\n')}
}

/// Finds every function in \`library\`, as dlopen gave it. False when it has none of them.
bool load(void* library, Driver& driver);

}  // namespace worker
`;
}

/** driver.cpp. */
export function emitDriver({ driverSymbols }: Specification): string {
  return `${BANNER}#include "driver.h"

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
${driverSymbols.map((name) => `  found |= find(library, "${name}", driver.${name});`).join('\n')}
  return found;
}

}  // namespace worker
`;
}

function visit(name: string): string {
  return `  visit.template operator()<&Driver::${name}>("${name}");`;
}
