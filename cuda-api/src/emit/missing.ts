import type { Specification } from '../specification.js';
import { BANNER, symbols, typeList } from './text.js';

/**
 * missing.cpp: weak defaults for functions that the simulated driver does not implement. A strong
 * definition replaces them.
 */
export function emitMissing(specification: Specification): string {
  const definitions = symbols(specification).map(
    ({ symbol, call }) =>
      `MISSING CUresult ${symbol}(${typeList(call.parameters)}) { return ` +
      `${call.result ?? 'CUDA_ERROR_NOT_SUPPORTED'}; }`,
  );
  return `${BANNER}#include "cuda_abi.h"

#define MISSING extern "C" __attribute__((weak, visibility("default")))

${definitions.join('\n')}
`;
}
