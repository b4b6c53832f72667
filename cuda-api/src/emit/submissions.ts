import { givesWork, perThreadSymbol } from '../calls.js';
import type { Specification } from '../specification.js';
import { BANNER } from './text.js';

/**
 * submissions.h: all entry points that submit work, for the test that none of them passes the gate
 * without a grant.
 */
export function emitSubmissions({ calls }: Specification): string {
  const rows = calls
    .map(({ call }) => call)
    .filter((call) => givesWork(call) && !call.internal)
    .flatMap((call) => [call.name, perThreadSymbol(call)].filter((symbol) => symbol !== null));
  return `${BANNER}// Entry points that give the GPU work.
#pragma once

#include <string_view>

inline constexpr std::string_view kSubmissions[] = {
${rows.map((symbol) => `    "${symbol}",`).join('\n')}
};
`;
}
