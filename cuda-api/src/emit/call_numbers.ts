import { createHash } from 'node:crypto';
import { travels } from '../calls.js';
import type { Specification } from '../specification.js';
import { BANNER } from './text.js';

/** call_numbers.h. The build id is a hash that includes all other generated files, `others`. */
export function emitCallNumbers({ calls }: Specification, others: Iterable<string>): string {
  const names = calls.filter(({ call }) => travels(call)).map(({ call }) => call.name);
  const hash = createHash('sha256');
  for (const text of [...names, ...others]) hash.update(text).update('\0');
  return `${BANNER}// The numbers of the calls that cross from interposer to worker. Both are of \
one build, which kBuildId proves.
#pragma once

#include <cstddef>
#include <cstdint>

enum class CallNumber : std::uint16_t {
${names.map((name, index) => `  ${name} = ${index + 1},`).join('\n')}
};

inline constexpr std::size_t kCallCount = ${names.length};
inline constexpr std::uint64_t kBuildId = 0x${hash.digest('hex').slice(0, 16)};

inline constexpr const char* kCallNames[kCallCount + 1] = {
    "unknown call",
${names.map((name) => `    "${name}",`).join('\n')}
};

/// For logs; any number is allowed.
inline const char* callName(std::uint16_t number) { return kCallNames[number <= kCallCount ? \
number : 0]; }
`;
}
