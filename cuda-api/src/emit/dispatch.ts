import { pointee, withoutConst } from '../c_declaration.js';
import { type Call, type Parameter, sizeParameters, streamParameter, travels } from '../calls.js';
import type { Specification } from '../specification.js';
import type { TypeTable } from '../type_table.js';
import { BANNER, indent } from './text.js';

/** dispatch.cpp: the worker's side of every call. */
export function emitDispatch({ calls, types }: Specification): string {
  const travelling = calls.map(({ call }) => call).filter(travels);
  const isBody = (call: Call): boolean => call.frameCustom && call.window === undefined;
  const rows = travelling.map(
    (call) => `    ${isBody(call) ? `&worker::${call.name}` : `&dispatch_${call.name}`},`,
  );
  return `${BANNER}#include <cstddef>
#include <cstdint>
#include <vector>

#include "call_numbers.h"
#include "driver.h"
#include "worker_bodies.h"

namespace worker {

namespace {

${travelling
  .filter((call) => !isBody(call))
  .map((call) => (call.frameCustom ? emitWindowed(call) : emitHandler(call, types)))
  .join('\n\n')}

using Handler = CUresult (*)(Thread&, wire::Decoder&, wire::Encoder&);
constexpr Handler kHandlers[kCallCount + 1] = {
    nullptr,
${rows.join('\n')}
};

}  // namespace

CUresult dispatch(Thread& thread, const wire::FrameHeader& header, wire::Decoder& in, \
wire::Encoder& out) {
  if (header.call == 0 || header.call > kCallCount) return thread.refuseFrame();
  return kHandlers[header.call](thread, in, out);
}

}  // namespace worker
`;
}

/** The body awaits the window, because only the body knows the stream. */
function emitWindowed({ name, window }: Call): string {
  return (
    `CUresult ` +
    `dispatch_${name}(Thread& thread, wire::Decoder& in, wire::Encoder& out) {\n  return ` +
    `worker::${name}(thread, in, out, Window::${window});\n}`
  );
}

/** Reported right before the work is submitted. Its duration depends on its sizes and its code. */
function awaitWindow(call: Call, types: TypeTable): string[] {
  if (!call.window) return [];
  const sizes = sizeParameters(call).map(({ name }) => name);
  const bytes = call.window === 'small' ? sizes[0] : '0';
  const code = call.submits === 'kernel' ? handles(call, types) : [];
  const shape = [
    `static_cast<std::uint64_t>(CallNumber::${call.name})`,
    ...sizes,
    ...code.map(({ name }) => `${name}Number`),
  ].join(', ');
  return [
    `thread.awaitWindow(Window::${call.window}, ` +
      `${streamParameter(call)?.name}, ${bytes}, {${shape}});`,
  ];
}

function emitHandler(call: Call, types: TypeTable): string {
  const answers = call.parameters.filter(
    ({ direction }) => direction === 'out' || direction === 'inout',
  );
  const ended = call.parameters.filter(({ destroys }) => destroys);
  const execute = `${call.workerCustom ? 'worker' : 'thread.driver'}::${call.name}`.replace(
    'driver::',
    'driver.',
  );
  const parameters = call.parameters.map(argument);
  const given = [...(call.workerCustom ? ['thread'] : []), ...parameters];
  const invocation = `${execute}(${given.join(', ')})`;
  const lines = [
    ...call.parameters.flatMap((parameter) => decode(parameter, types)),
    ...call.parameters.flatMap((parameter) => refuseLength(parameter, types)),
    'if (!in.finished()) return thread.refuseFrame();',
    ...(call.workerCustom
      ? []
      : [`if (thread.driver.${call.name} == nullptr) return CUDA_ERROR_NOT_SUPPORTED;`]),
    ...call.parameters.flatMap((parameter) => resolve(parameter, types)),
    ...(answers.some((parameter) => types.handleKind(elementOf(parameter)))
      ? ['if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;']
      : []),
    ...ended.map(({ name }) => `thread.ends(${name});`),
    ...awaitWindow(call, types),
    ...(call.mode === 'wait'
      ? [`thread.passTicket(${handleParameter(call, types)?.name ?? ''});`]
      : []),
    ...(answers.length + ended.length === 0
      ? [`return ${invocation};`]
      : [
          `if (const CUresult status = ${invocation}; status != CUDA_SUCCESS) return status;`,
          ...ended.map(({ name }) => `thread.session.handles.remove(${name}Number);`),
          ...answers.flatMap((parameter) => encode(parameter, types)),
          'return CUDA_SUCCESS;',
        ]),
  ];
  const outName = answers.length > 0 ? ' out' : '';
  return (
    `CUresult ` +
    `dispatch_${call.name}(Thread& thread, wire::Decoder& in, ` +
    `wire::Encoder&${outName}) {\n${indent(lines.join('\n'))}\n}`
  );
}

/** The objects that identify the code, not the place where it runs. */
function handles(call: Call, types: TypeTable): Parameter[] {
  return call.parameters.filter(
    ({ type, direction }) =>
      direction === 'value' && !['stream', 'context', undefined].includes(types.handleKind(type)),
  );
}

/** The object that a blocking call waits for. */
function handleParameter(call: Call, types: TypeTable): Parameter | undefined {
  return call.parameters.find(
    ({ type, direction }) => direction === 'value' && types.handleKind(type),
  );
}

/** A parameter as passed to the driver. */
function argument({ name, direction, count, optional }: Parameter): string {
  if (direction === 'value' || direction === 'string' || direction === 'pointer') return name;
  if (count !== undefined)
    return optional ? `${name}.empty() ? nullptr : ${name}.data()` : `${name}.data()`;
  return direction === 'in' && optional ? `${name}Pointer` : `&${name}`;
}

function elementOf({ type }: Parameter): string {
  return withoutConst(pointee(type));
}

/** Decodes the request of the client's remote::X. */
function decode(parameter: Parameter, types: TypeTable): string[] {
  const { type, name, direction, count, optional } = parameter;
  if (direction === 'value') {
    return types.handleKind(type)
      ? [`const auto ${name}Number = in.get<std::uint64_t>();`]
      : [`const auto ${name} = in.get<${type}>();`];
  }
  if (direction === 'pointer')
    return [`const auto ${name} = reinterpret_cast<${type}>(in.get<std::uint64_t>());`];
  if (direction === 'string')
    return [`const char* const ${name} = in.getString(wire::kMaxFrameBytes);`];
  if (direction === 'out') return [];
  const element = elementOf(parameter);
  const isHandle = types.handleKind(element) !== undefined;
  if (count !== undefined || optional) {
    return [
      `const auto ${listName(parameter, isHandle)} = in.getArray<` +
        `${isHandle ? 'std::uint64_t' : element}>(wire::kMaxFrameBytes);`,
    ];
  }
  if (isHandle) return [`const auto ${name}Number = in.get<std::uint64_t>();`];
  return [`auto ${name} = in.get<${element}>();`];
}

function listName({ name, count }: Parameter, isHandle: boolean): string {
  if (isHandle) return `${name}Numbers`;
  return count === undefined ? `${name}List` : name;
}

/** Checks that a list has as many elements as its count. */
function refuseLength(parameter: Parameter, types: TypeTable): string[] {
  const { direction, count, optional } = parameter;
  if (direction !== 'in' || (count === undefined && !optional)) return [];
  const list = listName(parameter, types.handleKind(elementOf(parameter)) !== undefined);
  const wrong =
    count === undefined
      ? `${list}.size() > 1`
      : `${optional ? `!${list}.empty() && ` : ''}${list}.size() != ` +
        `static_cast<std::size_t>(${count})`;
  return [`if (${wrong}) return thread.refuseFrame();`];
}

/** Looks up the driver's objects of the handles, and declares variables for the answers. */
function resolve(parameter: Parameter, types: TypeTable): string[] {
  const { type, name, direction, count, optional } = parameter;
  if (direction === 'value') return types.handleKind(type) ? find(type, `${name}Number`, name) : [];
  if (direction === 'string' || direction === 'pointer' || direction === 'inout') return [];
  const element = elementOf(parameter);
  const isHandle = types.handleKind(element) !== undefined;
  if (direction === 'out') {
    if (count === undefined) return [`${element} ${name}{};`];
    const refuse =
      `if (static_cast<std::size_t>(${count}) > wire::kReplyBytes / ` +
      `${types.layout(element).size}) return ` +
      `CUDA_ERROR_INVALID_VALUE;`;
    return [refuse, `std::vector<${element}> ${name}(${count});`];
  }
  if (count !== undefined) {
    if (!isHandle) return [];
    return [
      `std::vector<${element}> ${name}(${name}Numbers.size());`,
      `for (std::size_t i = 0; i < ${name}.size(); ++i) {`,
      ...find(element, `${name}Numbers[i]`, null, `&${name}[i]`).map((line) => `  ${line}`),
      '}',
    ];
  }
  if (optional)
    return [
      `const ${element}* const ${name}Pointer = ` +
        `${name}List.empty() ? nullptr : ${name}List.data();`,
    ];
  return isHandle ? find(element, `${name}Number`, name) : [];
}

function find(
  type: string,
  number: string,
  variable: string | null,
  target = `&${variable}`,
): string[] {
  const look =
    `if (const CUresult status = ` +
    `thread.find<${type}>(${number}, ${target}); status != CUDA_SUCCESS) return status;`;
  return variable === null ? [look] : [`${type} ${variable}{};`, look];
}

function encode(parameter: Parameter, types: TypeTable): string[] {
  const { name, count } = parameter;
  const element = elementOf(parameter);
  const kind = types.handleKind(element);
  const add = (value: string): string => {
    const owner = parameter.owner === undefined ? '' : `, ${parameter.owner}Number`;
    const isPointer = types.find(element)?.kind === 'handle';
    const pointer = isPointer ? value : `reinterpret_cast<void*>(${value})`;
    return `out.put<std::uint64_t>(thread.add(wire::HandleKind::${kind}, ${pointer}${owner}));`;
  };
  if (count === undefined) return [kind ? add(name) : `out.put(${name});`];
  return kind
    ? [
        `out.put<std::uint64_t>(${name}.size() * sizeof(std::uint64_t));`,
        `for (const auto object : ${name}) ${add('object')}`,
      ]
    : [`out.putBytes(${name}.data(), ${name}.size() * sizeof(${element}));`];
}
