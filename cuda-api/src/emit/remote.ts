import { pointee, withoutConst } from '../c_declaration.js';
import { type Call, hasFrame, type Parameter } from '../calls.js';
import type { Specification } from '../specification.js';
import type { TypeTable } from '../type_table.js';
import { BANNER, indent, parameterList } from './text.js';

/** remote.h: the client's side of every call whose frame is generated. */
export function emitRemoteHeader({ calls }: Specification): string {
  const prototypes = calls
    .filter(({ call }) => hasFrame(call))
    .map(({ call }) => `CUresult ${call.name}(${parameterList(call.parameters)});`);
  return `${BANNER}// Calls made in the worker.
#pragma once

#include "cuda_abi.h"

namespace remote {

${prototypes.join('\n')}

}  // namespace remote
`;
}

/** remote.cpp. */
export function emitRemote({ calls, types }: Specification): string {
  const bodies = calls
    .filter(({ call }) => hasFrame(call))
    .map(({ call }) => emitCall(call, types));
  return `${BANNER}#include "remote.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "call_numbers.h"
#include "interposer/session/call.h"
#include "wire/decoder.h"
#include "wire/encoder.h"
#include "wire/frame.h"

namespace remote {

${bodies.join('\n\n')}

}  // namespace remote
`;
}

function emitCall(call: Call, types: TypeTable): string {
  const order = call.ordered ? 'kOrdered' : 'kUnordered';
  const lines = [
    ...new Set(call.parameters.flatMap(measure)),
    'interposer::Call call;',
    `if (!call.begin(CallNumber::${call.name}, ` +
      `${payloadBound(call, types)}, interposer::${order})) return ` +
      `call.status();`,
    ...call.parameters.flatMap(refuseNull),
    ...call.parameters.flatMap((parameter) => encode(parameter, types)),
    ...(call.mode === 'async'
      ? [`return call.enqueue(${plausible(call, types)});`]
      : awaitReply(call, types)),
  ];
  return (
    `CUresult ${call.name}(${parameterList(call.parameters)}) {\n` +
    `${indent(lines.join('\n'))}\n}`
  );
}

/**
 * The length of variable data. A length that exceeds a frame is refused before it is multiplied.
 */
function measure({ type, name, direction, count }: Parameter): string[] {
  if (direction === 'string')
    return [`const std::size_t ${name}Bytes = ${name} == nullptr ? 0 : std::strlen(${name}) + 1;`];
  if (count === undefined) return [];
  const refuse =
    `if (static_cast<std::size_t>(${count}) > wire::kMaxFrameBytes) return ` +
    `CUDA_ERROR_INVALID_VALUE;`;
  return direction === 'in'
    ? [refuse, `const std::size_t ${name}Bytes = ${count} * sizeof(${pointee(type)});`]
    : [refuse];
}

function payloadBound(call: Call, types: TypeTable): string {
  let fixed = 0;
  const variable: string[] = [];
  for (const parameter of call.parameters) {
    const { name, direction, count, optional, type } = parameter;
    if (direction === 'out') continue;
    if (direction === 'string' || (direction === 'in' && count !== undefined))
      variable.push(`wire::Encoder::padded(${name}Bytes)`);
    if (direction === 'string' || count !== undefined || optional) fixed += 8;
    if (direction === 'value' || direction === 'pointer') fixed += padded(types.layout(type).size);
    else if (direction !== 'string' && count === undefined)
      fixed += padded(types.layout(pointee(type)).size);
  }
  return [fixed, ...variable].join(' + ');
}

function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

function refuseNull({ name, direction, optional, count }: Parameter): string[] {
  if (direction === 'value' || direction === 'pointer' || optional) return [];
  const condition =
    count === undefined ? `${name} == nullptr` : `${name} == nullptr && ${count} != 0`;
  return [`if (${condition}) return CUDA_ERROR_INVALID_VALUE;`];
}

function encode(parameter: Parameter, types: TypeTable): string[] {
  const { type, name, direction, count, optional } = parameter;
  if (direction === 'value')
    return [put(types.handleKind(type) ? `interposer::number(${name})` : name)];
  if (direction === 'pointer') return [put(`reinterpret_cast<std::uint64_t>(${name})`)];
  if (direction === 'string') return [`call.encoder().putBytes(${name}, ${name}Bytes);`];
  if (direction === 'out') return [];
  const isHandle = types.handleKind(withoutConst(pointee(type))) !== undefined;
  if (count !== undefined) {
    const bytes = optional ? `${name} == nullptr ? 0 : ${name}Bytes` : `${name}Bytes`;
    if (!isHandle) return [`call.encoder().putBytes(${name}, ${bytes});`];
    return [
      put(`static_cast<std::uint64_t>(${name}Bytes)`),
      forEach(count, put(`interposer::number(${name}[i])`)),
    ];
  }
  if (optional)
    return [`call.encoder().putBytes(${name}, ${name} == nullptr ? 0 : sizeof *${name});`];
  return [put(isHandle ? `interposer::number(*${name})` : `*${name}`)];
}

/**
 * Condition for enqueueing a call without waiting for its result. The driver judges null handles,
 * except of streams and contexts, where 0 is valid.
 */
function plausible(call: Call, types: TypeTable): string {
  const handles = call.parameters.filter(
    ({ type, direction }) =>
      direction === 'value' && !['stream', 'context', undefined].includes(types.handleKind(type)),
  );
  return handles.map(({ name, type }) => `${name} != ${type}{}`).join(' && ');
}

function put(value: string): string {
  return `call.encoder().put(${value});`;
}

function forEach(count: string, statement: string): string {
  return `for (std::size_t i = 0; i < static_cast<std::size_t>(${count}); ++i) ${statement}`;
}

function awaitReply(call: Call, types: TypeTable): string[] {
  const answers = call.parameters.filter(
    ({ direction }) => direction === 'out' || direction === 'inout',
  );
  if (answers.length === 0) return ['wire::Decoder reply;', 'return call.wait(reply);'];
  return [
    'wire::Decoder reply;',
    'if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;',
    ...answers.flatMap((parameter) => decode(parameter, types)),
    'if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;',
    ...answers.flatMap((parameter) => answer(parameter, types)),
    'return CUDA_SUCCESS;',
  ];
}

/** Decodes the whole answer before it writes any of it to the program. */
function decode({ type, name, count }: Parameter, types: TypeTable): string[] {
  const element = pointee(type);
  const isHandle = types.handleKind(element) !== undefined;
  const travelling = isHandle ? 'std::uint64_t' : element;
  if (count === undefined) return [`const auto ${name}Reply = reply.get<${travelling}>();`];
  return [
    `const auto ${name}Reply = reply.getArray<${travelling}>(wire::kReplyBytes);`,
    `if (${name}Reply.size() != ` +
      `static_cast<std::size_t>(${count})) return CUDA_ERROR_DEVICE_UNAVAILABLE;`,
  ];
}

function answer({ type, name, count, optional }: Parameter, types: TypeTable): string[] {
  const element = pointee(type);
  const value = (from: string): string =>
    types.handleKind(element) ? `interposer::handle<${element}>(${from})` : from;
  if (count !== undefined) return [forEach(count, `${name}[i] = ${value(`${name}Reply[i]`)};`)];
  return [`${optional ? `if (${name} != nullptr) ` : ''}*${name} = ${value(`${name}Reply`)};`];
}
