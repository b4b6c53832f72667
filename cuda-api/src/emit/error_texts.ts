import type { Specification } from '../specification.js';
import { BANNER } from './text.js';

/** error_texts.h: name and description of every CUresult. */
export function emitErrorTexts({ types }: Specification): string {
  const results = types.find('CUresult');
  const values = results?.kind === 'enum' ? results.values : [];
  const rows = values.map(
    ({ name, text }) => `    {${name}, "${name}", ${JSON.stringify(text ?? '')}},`,
  );
  return `${BANNER}// What cuGetErrorName and cuGetErrorString answer.
#pragma once

#include "cuda_abi.h"

struct ErrorText {
  CUresult result;
  const char* name;
  const char* text;
};

inline constexpr ErrorText kErrorTexts[] = {
${rows.join('\n')}
};
`;
}
