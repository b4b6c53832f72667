import { pointee, withoutConst } from '../c_declaration.js';
import { type Call, hasFrame, type Parameter, travels } from '../calls.js';
import type { Specification } from '../specification.js';
import type { TypeTable } from '../type_table.js';
import { BANNER, indent, parameterList } from './text.js';

/** How many elements the arrays have. */
const ELEMENTS = 3;

/**
 * roundtrip_test.cpp: a test case for each generated call. The driver gets the program's arguments,
 * and the program the driver's answer.
 */
export function emitRoundtripTest({ calls, types }: Specification): string {
  const travelling = calls.map(({ call }) => call).filter(travels);
  const generated = travelling.filter(hasFrame);
  const bodies = travelling.map((call) => {
    if (call.frameCustom)
      return (
        `CUresult ${call.name}(Thread&, wire::Decoder&, ` +
        `wire::Encoder&${call.window ? ', Window' : ''}) { return CUDA_ERROR_NOT_SUPPORTED; }`
      );
    const head = `CUresult ${call.name}(${parameterList(call.parameters)})`;
    if (!call.workerCustom) return null;
    return (
      `${head.replace('(', `(Thread&${call.parameters.length === 0 ? '' : ', '}`)} ` +
      `${driverBody(call, types)}`
    );
  });
  const drivers = generated
    .filter((call) => !call.workerCustom)
    .map(
      (call) =>
        `CUresult ` +
        `driver_${call.name}(${parameterList(call.parameters)}) ${driverBody(call, types)}`,
    );
  return `${BANNER}#include "native/worker/session/thread.h"
#include "remote.h"
#include "roundtrip.h"
#include "worker_bodies.h"

namespace worker {

${bodies.filter((body) => body !== null).join('\n\n')}

}  // namespace worker

namespace {

${drivers.join('\n\n')}

${generated.map((call) => emitTest(call, types)).join('\n\n')}

}  // namespace
`;
}

/**
 * Checks the driver's arguments and gives its answer. The seed of a parameter is its position.
 */
function driverBody(call: Call, types: TypeTable): string {
  const lines = call.parameters.flatMap((parameter, index) => {
    const { name, type, direction, count } = parameter;
    if (direction === 'value')
      return [
        `CHECK(roundtrip::same(${name}, ${given(parameter, index, types, call, 'object')}));`,
      ];
    if (direction === 'string') return [`CHECK(std::strcmp(${name}, "name ${index}") == 0);`];
    if (direction === 'pointer')
      return [`CHECK(roundtrip::same(${name}, roundtrip::object<${type}>(${index})));`];
    const element = withoutConst(pointee(type));
    const of = (seed: string): string =>
      types.handleKind(element)
        ? `roundtrip::object<${element}>(${seed})`
        : `roundtrip::value<${element}>(${seed})`;
    const each = (statement: (target: string, seed: string) => string): string =>
      count === undefined
        ? statement(`*${name}`, `${index}`)
        : `for (int i = 0; i < ${ELEMENTS}; ++i) ${statement(`${name}[i]`, `${index} + 16 * i`)}`;
    const read = each((target, seed) => `CHECK(roundtrip::same(${target}, ${of(seed)}));`);
    const write = each(
      (target, seed) => `${target} = ${of(direction === 'inout' ? `${seed} + 100` : seed)};`,
    );
    if (direction === 'in') return [read];
    return direction === 'inout' ? [read, write] : [write];
  });
  const body = ['++roundtrip::record().executed;', ...lines, 'return CUDA_SUCCESS;'];
  return `{\n${indent(body.join('\n'))}\n}`;
}

/** A value as the client has it (`handle`) or as the driver gets it (`object`). */
function given(
  { type, name }: Parameter,
  index: number,
  types: TypeTable,
  call: Call,
  side: 'handle' | 'object',
): string {
  if (call.parameters.some(({ count }) => count === name))
    return `static_cast<${type}>(${ELEMENTS})`;
  return types.handleKind(type)
    ? `roundtrip::${side}<${type}>(${index})`
    : `roundtrip::value<${type}>(${index})`;
}

function emitTest(call: Call, types: TypeTable): string {
  const nullable = call.parameters.filter(
    ({ direction, optional }) => !optional && direction !== 'value' && direction !== 'pointer',
  );
  const argumentsBut = (nulled?: Parameter): string[] =>
    call.parameters.map((each) => (each === nulled ? 'nullptr' : argument(each)));
  const invoke = (nulled?: Parameter): string =>
    `remote::${call.name}(${argumentsBut(nulled).join(', ')})`;
  const lines = [
    ...(call.workerCustom
      ? []
      : [`roundtrip::thread().driver.${call.name} = &driver_${call.name};`]),
    ...call.parameters.map((parameter, index) => declareArgument(parameter, index, types, call)),
    'roundtrip::test([&] {',
    ...call.parameters.flatMap((parameter, index) => resetArgument(parameter, index)),
    `  const CUresult status = ${invoke()};`,
    '  if (status != CUDA_SUCCESS) return status;',
    ...call.parameters
      .flatMap((parameter, index) => expectAnswer(parameter, index, types))
      .map((line) => `  ${line}`),
    '  return CUDA_SUCCESS;',
    '});',
    ...(call.mode === 'wait'
      ? ['CHECK(roundtrip::record().ticketsPassed > 0);']
      : ['CHECK(roundtrip::record().ticketsPassed == 0);']),
    ...call.parameters
      .filter(({ destroys }) => destroys)
      .flatMap(({ name }) => [
        'REQUIRE(!roundtrip::record().removed.empty());',
        `CHECK(roundtrip::record().removed.front() == (std::uint64_t)${name});`,
      ]),
    ...nullable.map((parameter) => `roundtrip::testNull([&] { return ${invoke(parameter)}; });`),
  ];
  return (
    `TEST_CASE("${call.name} reaches the driver whole, or is refused") ` +
    `{\n${indent(lines.join('\n'))}\n}`
  );
}

function argument({ name, direction, count }: Parameter): string {
  return direction === 'value' ||
    direction === 'string' ||
    direction === 'pointer' ||
    count !== undefined
    ? name
    : `&${name}`;
}

function declareArgument(
  parameter: Parameter,
  index: number,
  types: TypeTable,
  call: Call,
): string {
  const { type, name, direction, count } = parameter;
  if (direction === 'value')
    return `${type} ${name} = ${given(parameter, index, types, call, 'handle')};`;
  if (direction === 'string') return `const char* ${name} = "name ${index}";`;
  if (direction === 'pointer') return `${type} ${name} = roundtrip::object<${type}>(${index});`;
  const element = withoutConst(pointee(type));
  const of = (seed: string): string =>
    types.handleKind(element)
      ? `roundtrip::handle<${element}>(${seed})`
      : `roundtrip::value<${element}>(${seed})`;
  if (direction === 'out')
    return count === undefined ? `${element} ${name}{};` : `${element} ${name}[${ELEMENTS}]{};`;
  if (count === undefined) return `${element} ${name} = ${of(`${index}`)};`;
  const elements = Array.from({ length: ELEMENTS }, (_, i) => of(`${index} + 16 * ${i}`));
  return `${element} ${name}[${ELEMENTS}] = {${elements.join(', ')}};`;
}

/** Restores what the call changes, because it is made again. */
function resetArgument({ type, name, direction }: Parameter, index: number): string[] {
  return direction === 'inout' ? [`  ${name} = roundtrip::value<${pointee(type)}>(${index});`] : [];
}

function expectAnswer(
  { type, name, direction, count }: Parameter,
  index: number,
  types: TypeTable,
): string[] {
  if (direction !== 'out' && direction !== 'inout') return [];
  const element = pointee(type);
  const seed = direction === 'inout' ? `${index} + 100` : `${index}`;
  const of = (text: string): string =>
    types.handleKind(element)
      ? `roundtrip::handle<${element}>(${text})`
      : `roundtrip::value<${element}>(${text})`;
  if (count === undefined) return [`CHECK(roundtrip::same(${name}, ${of(seed)}));`];
  return [
    `for (int i = 0; i < ${ELEMENTS}; ++i) CHECK(roundtrip::same(` +
      `${name}[i], ${of(`${seed} + 16 * i`)}));`,
  ];
}
