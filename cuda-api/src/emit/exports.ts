import {
  type Call,
  doesNothing,
  hasInterposerBody,
  streamParameter,
  takesDefaultStream,
} from '../calls.js';
import type { Specification } from '../specification.js';
import { argumentList, BANNER, parameterList, symbols, typeList } from './text.js';

/** exports.cpp: every symbol of libcuda.so.1. */
export function emitExports(specification: Specification): string {
  return `${BANNER}#include "cuda_abi.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

/// In a program built for per-thread default streams, stream 0 means the thread's own.
inline CUstream perThread(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : \
stream; }

}  // namespace

${symbols(specification)
  .map(({ symbol, call, perThread }) => emitExport(symbol, call, perThread))
  .join('\n')}
`;
}

function emitExport(symbol: string, call: Call, perThread: boolean): string {
  if (doesNothing(call))
    return (
      `EXPORT CUresult ${symbol}(${typeList(call.parameters)}) { return ` +
      `${answer(symbol, call)}; }`
    );
  if (call.same !== undefined) {
    return (
      `EXPORT CUresult ${symbol}(${parameterList(call.parameters)}) { return ` +
      `${call.same}(${argumentList(call.parameters)}); }`
    );
  }
  const space = hasInterposerBody(call) ? 'interposer' : 'remote';
  return (
    `EXPORT CUresult ${symbol}(${parameterList(call.parameters)}) { return ` +
    `${space}::${call.name}(${exportArguments(call, perThread)}); }`
  );
}

function answer(symbol: string, call: Call): string {
  if (call.mode === 'constant') return `interposer::constant(${call.result})`;
  const reason = JSON.stringify(call.why ?? 'this build lacks it');
  return `interposer::unsupported("${symbol}", ${reason})`;
}

function exportArguments(call: Call, perThread: boolean): string {
  if (takesDefaultStream(call))
    return argumentList(call.parameters, perThread ? 'CU_STREAM_PER_THREAD' : 'nullptr');
  if (!perThread) return argumentList(call.parameters);
  const stream = streamParameter(call);
  return call.parameters
    .map((parameter) => (parameter === stream ? `perThread(${parameter.name})` : parameter.name))
    .join(', ');
}

/** exports.map: the symbols that the linker exports. */
export function emitExportsMap(specification: Specification): string {
  const names = symbols(specification).map(({ symbol }) => `    ${symbol};`);
  return `/* Generated. Do not edit, change cuda-api/. */
{
  global:
${names.sort().join('\n')}
  local:
    *;
};
`;
}

/** entry_points.cpp: what cuGetProcAddress answers, sorted by name, then version. */
export function emitEntryPoints(specification: Specification): string {
  const rows = symbols(specification).flatMap(({ symbol, call, perThread }) =>
    call.names.map(({ name, version }) => ({
      name,
      version: perThread && call.perThread ? Math.max(call.perThread.version, version) : version,
      perThread,
      text: `${perThread}, ${call.mode !== 'unsupported'}, reinterpret_cast<void*>(&::${symbol})`,
    })),
  );
  rows.sort(
    (one, two) =>
      compare(one.name, two.name) ||
      one.version - two.version ||
      Number(one.perThread) - Number(two.perThread),
  );
  return `${BANNER}#include "interposer/entry/entry_points.h"

#include "cuda_abi.h"

namespace interposer {

const EntryPoint kEntryPoints[] = {
${rows.map(({ name, version, text }) => `    {"${name}", ${version}, ${text}},`).join('\n')}
};
const std::size_t kEntryPointCount = sizeof kEntryPoints / sizeof *kEntryPoints;

}  // namespace interposer
`;
}

function compare(one: string, two: string): number {
  return one < two ? -1 : one > two ? 1 : 0;
}

/** interposer_bodies.h: the hand-written bodies of the interposer. */
export function emitInterposerBodies({ calls }: Specification): string {
  const bodies = calls
    .filter(({ call }) => hasInterposerBody(call))
    .map(({ call }) => {
      const parameters = takesDefaultStream(call)
        ? parameterList(call.parameters, 'CUstream defaultStream')
        : parameterList(call.parameters);
      return `CUresult ${call.name}(${parameters});`;
    });
  return `${BANNER}// Bodies of exported functions that are written by hand. \`defaultStream\` is \
0, or CU_STREAM_PER_THREAD in the per-thread variant.
#pragma once

#include "cuda_abi.h"

namespace interposer {

${bodies.join('\n')}

}  // namespace interposer
`;
}
