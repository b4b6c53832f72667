import type { Specification } from '../specification.js';
import { BANNER, symbols, typeList } from './text.js';

/**
 * missing.cpp: what a driver of our own does not have yet. A strong definition elsewhere in the
 * library replaces one of these.
 */
export function emitMissing(specification: Specification): string {
  const definitions = symbols(specification).map(
    ({ symbol, call }) =>
      `MISSING CUresult ${symbol}(${typeList(call.parameters)}) { return ${call.result ?? 'CUDA_ERROR_NOT_SUPPORTED'}; }`,
  );
  return `${BANNER}#include "cuda_abi.h"

#define MISSING extern "C" __attribute__((weak, visibility("default")))

${definitions.join('\n')}
`;
}
