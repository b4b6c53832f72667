import {
  type Call,
  doesNothing,
  hasInterposerBody,
  streamParameter,
  takesDefaultStream,
} from '../calls.js';
import type { Specification } from '../specification.js';
import { argumentList, BANNER, parameterList, symbols, tracedCalls, typeList } from './text.js';

/**
 * exports.cpp: every symbol of libcuda.so.1. A symbol jumps to its call's body through a table,
 * which costs as many instructions as a direct jump. A trace replaces the table.
 */
export function emitExports(specification: Specification): string {
  const calls = tracedCalls(specification);
  const bodies = calls.map((call) => bodyOf(call, specification));
  return `${BANNER}#include "cuda_abi.h"
#include "interposer/session/call.h"
#include "interposer/trace/traced.h"
#include "interposer_bodies.h"
#include "remote.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

/// In a program built for per-thread default streams, stream 0 means the thread's own.
inline CUstream perThread(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : \
stream; }

namespace answers {

${calls.filter(doesNothing).map(emitAnswer).join('\n')}

}  // namespace answers

struct Bodies {
${calls.map((call) => `  CUresult (*${call.name})(${bodyTypes(call, specification)});`).join('\n')}
};

Bodies bodies = {
${bodies.map((body) => `    &${body},`).join('\n')}
};

using interposer::trace::Traced;
constexpr Bodies kTraced = {
${bodies.map((body, index) => `    &Traced<${index}, &${body}>::call,`).join('\n')}
};

}  // namespace

void interposer::trace::traceCalls() { bodies = kTraced; }

${symbols(specification)
  .map(({ symbol, call, perThread }) => emitExport(symbol, call, perThread, specification))
  .join('\n')}
`;
}

function emitExport(
  symbol: string,
  call: Call,
  perThread: boolean,
  specification: Specification,
): string {
  const stands = perThread && call.same === undefined;
  const extra = takesDefaultStream(equivalent(call, specification));
  const list = extra
    ? argumentList(call.parameters, stands ? 'CU_STREAM_PER_THREAD' : 'nullptr')
    : exportArguments(call, stands);
  return (
    `EXPORT CUresult ${symbol}(${parameterList(call.parameters)}) { return ` +
    `bodies.${call.name}(${list}); }`
  );
}

/** The call that does the work of a call of mode "same". */
function equivalent(call: Call, specification: Specification): Call {
  const same = specification.calls.find((each) => each.call.name === call.same);
  return same === undefined ? call : equivalent(same.call, specification);
}

function bodyOf(call: Call, specification: Specification): string {
  const target = equivalent(call, specification);
  if (doesNothing(target)) return `answers::${target.name}`;
  return `${hasInterposerBody(target) ? 'interposer' : 'remote'}::${target.name}`;
}

function bodyTypes(call: Call, specification: Specification): string {
  const target = equivalent(call, specification);
  return [typeList(target.parameters), ...(takesDefaultStream(target) ? ['CUstream'] : [])].join(
    ', ',
  );
}

function emitAnswer(call: Call): string {
  return `CUresult ${call.name}(${typeList(call.parameters)}) { return ${answer(call)}; }`;
}

function answer(call: Call): string {
  if (call.mode === 'constant') return `interposer::constant(${call.result})`;
  const reason = JSON.stringify(call.why ?? 'this build lacks it');
  return `interposer::unsupported("${call.name}", ${reason})`;
}

function exportArguments(call: Call, perThread: boolean): string {
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
