import { isPointer, pointee, withoutConst } from './c_declaration.js';
import {
  type Call,
  doesNothing,
  givesWork,
  hasFrame,
  type Parameter,
  sizeParameters,
  streamParameter,
  travels,
} from './calls.js';
import type { TypeTable } from './type_table.js';

/** Refuses a specification that is contradictory or has duplicates. */
export function checkCalls(calls: readonly Call[], types: TypeTable): void {
  const byName = new Map<string, Call>();
  const entryPoints = new Map<string, Call>();
  for (const call of calls) {
    const earlier = byName.get(call.name);
    if (earlier)
      call.place.fail(
        `${call.name} is already described in ${earlier.place.file}:${earlier.place.line}.`,
      );
    byName.set(call.name, call);
    for (const { name, version } of call.names) {
      const other = entryPoints.get(`${name}@${version}`);
      if (other)
        call.place.fail(
          `${name} since version ${version} is already an entry point of ${other.name}.`,
        );
      entryPoints.set(`${name}@${version}`, call);
    }
    checkCall(call, types);
  }
  for (const call of calls) checkSame(call, byName);
}

/** A call of mode "same" must name a call with the same parameters. */
function checkSame(call: Call, calls: ReadonlyMap<string, Call>): void {
  if ((call.mode === 'same') !== (call.same !== undefined))
    call.place.fail(`${call.name}: "mode: same" and "same: CALL" require each other.`);
  if (call.same === undefined) return;
  const target =
    calls.get(call.same) ??
    call.place.fail(`${call.name}: ${call.same} is not described in cuda-api/calls/.`);
  if (target.mode === 'same' || doesNothing(target) || target.internal) {
    call.place.fail(`${call.name}: ${call.same} has no implementation (mode: ${target.mode}).`);
  }
  if (call.perThread)
    call.place.fail(`${call.name}: "mode: same" does not support a per-thread variant.`);
  if (
    call.parameters.map(({ type }) => type).join() !==
    target.parameters.map(({ type }) => type).join()
  ) {
    call.place.fail(`${call.name}: "mode: same" requires the parameters of ${call.same}.`);
  }
}

/** `result` requires the mode "constant", and `why` the mode "refused". */
function checkResult(call: Call): void {
  const wanted = { result: call.mode === 'constant', why: call.mode === 'refused' };
  if (wanted.result !== (call.result !== undefined))
    call.place.fail(`${call.name}: "mode: constant" and "result: CUDA_…" require each other.`);
  if (wanted.why !== (call.why !== undefined))
    call.place.fail(`${call.name}: "mode: refused" and "why: REASON" require each other.`);
}

function checkCall(call: Call, types: TypeTable): void {
  checkName(call);
  checkResult(call);
  if (call.window) checkWindow(call);
  if (!travels(call)) {
    if (call.workerCustom || call.frameCustom)
      call.place.fail(
        `${call.name} is not sent to the worker (mode: ${call.mode}): ` +
          'remove "worker: custom" and "frame: custom".',
      );
    if (!call.ordered)
      call.place.fail(
        `${call.name} is not sent to the worker (mode: ${call.mode}): remove "ordered: false".`,
      );
    if (call.backend)
      call.place.fail(`${call.name} is not sent to the worker: remove "backend: ${call.backend}".`);
  }
  if ((doesNothing(call) || call.mode === 'same') && call.clientCustom) {
    call.place.fail(`${call.name} has no body (mode: ${call.mode}): remove "client: custom".`);
  }
  if (call.frameCustom && !call.internal && !call.clientCustom)
    call.place.fail(
      `${call.name}: "frame: custom" requires "client: custom", as no stub is generated.`,
    );
  if (call.frameCustom && call.workerCustom)
    call.place.fail(
      `${call.name}: "frame: custom" already implies a custom body in the worker: ` +
        'remove "worker: custom".',
    );
  if (
    !call.ordered &&
    call.parameters.some(({ type }) =>
      types.handleKind(isPointer(type) ? withoutConst(pointee(type)) : type),
    )
  )
    call.place.fail(
      `${call.name} uses an object that another call may destroy, so it must be ordered: ` +
        'remove "ordered: false".',
    );
  for (const parameter of call.parameters) {
    if (!types.knows(parameter.type))
      parameter.place.fail(
        `${call.name}: the type of ${parameter.name} is not declared in cuda-api/types/.`,
      );
    if (hasFrame(call)) checkFrame(call, parameter, types);
    else if (isDescribed(parameter))
      parameter.place.fail(
        `${call.name} has no generated frame: ${parameter.name} takes only a type and a name.`,
      );
  }
  if (hasFrame(call) && call.perThread && !call.clientCustom && !streamParameter(call)) {
    call.place.fail(`${call.name} has a per-thread variant but no CUstream: add "client: custom".`);
  }
  checkSubmission(call);
  checkAllocates(call, types);
}

/** A call with a window must be ordered and have a stream. A small copy must have a size. */
function checkWindow(call: Call): void {
  if (!travels(call))
    call.place.fail(
      `${call.name} is not sent to the worker (mode: ${call.mode}): remove "window".`,
    );
  if (!call.ordered)
    call.place.fail(`${call.name}: an unordered call cannot wait for a window: remove "window".`);
  if (call.mode === 'wait')
    call.place.fail(
      `${call.name}: a call of mode "wait" gives up its place in the order of submission, ` +
        'so it cannot wait for a window: remove "window".',
    );
  if (!hasFrame(call)) return;
  if (!streamParameter(call))
    call.place.fail(`${call.name}: "window" requires a CUstream, or "frame: custom".`);
  if (call.window === 'small' && sizeParameters(call).length !== 1)
    call.place.fail(
      `${call.name}: "window: small" requires exactly one size_t, the number of copied bytes, ` +
        'or "frame: custom".',
    );
}

/**
 * Each call that may submit work must declare it, and each call that submits work must have a
 * window.
 */
function checkSubmission(call: Call): void {
  const mayGiveWork =
    !doesNothing(call) &&
    call.mode !== 'same' &&
    (streamParameter(call) ?? call.perThread) !== undefined;
  if (mayGiveWork && !call.submits)
    call.place.fail(
      `${call.name} has a stream: add "submits: kernel", "copy", "memset", "marker", ` +
        'or "nothing" if it uses no GPU time.',
    );
  if (travels(call) && givesWork(call) !== (call.window !== undefined)) {
    call.place.fail(
      `${call.name}: a call that is sent to the worker has a "window" ` +
        `if and only if it submits work (submits: ${call.submits}).`,
    );
  }
  if ((call.window === 'marker') !== (call.submits === 'marker' && travels(call)))
    call.place.fail(
      `${call.name}: "window: marker" requires "submits: marker" (submits: ${call.submits}).`,
    );
}

/**
 * Each call that returns an object or device memory must declare whether it allocates memory, so
 * that no charge is forgotten.
 */
function checkAllocates(call: Call, types: TypeTable): void {
  if (!travels(call)) {
    if (call.allocates)
      call.place.fail(
        `${call.name} is not sent to the worker (mode: ${call.mode}): remove "allocates".`,
      );
    return;
  }
  const given = call.parameters.find(
    ({ type, direction }) =>
      direction !== 'in' &&
      isPointer(type) &&
      !type.startsWith('const ') &&
      isTaken(pointee(type), types),
  );
  if (given && !call.allocates)
    call.place.fail(
      `${call.name} returns ${given.type}: "allocates" is missing. ` +
        'Add "allocates: nothing", "device" or "host".',
    );
}

function isTaken(type: string, types: TypeTable): boolean {
  return type === 'CUdeviceptr' || types.handleKind(type) !== undefined;
}

function checkName(call: Call): void {
  if (!call.internal) return;
  if (/^cu[A-Z]/.test(call.name))
    call.place.fail(`${call.name} is internal: its name must not begin with "cu".`);
  if (!travels(call))
    call.place.fail(`${call.name} is internal: its mode must be async, call or wait.`);
  if (call.clientCustom || call.names.length > 0)
    call.place.fail(`${call.name} is internal: remove "names" and "client: custom".`);
}

function checkFrame(call: Call, parameter: Parameter, types: TypeTable): void {
  if (parameter.direction === 'value') checkValue(call, parameter, types);
  else checkPointer(call, parameter, types);
}

function isDescribed(parameter: Parameter): boolean {
  return parameter.direction !== 'value' || parameter.destroys || parameter.owner !== undefined;
}

function checkPointer(call: Call, parameter: Parameter, types: TypeTable): void {
  const fail = (sentence: string): never =>
    parameter.place.fail(`${call.name}: ${parameter.name} ${sentence}`);
  const { type, direction } = parameter;
  if (!isPointer(type)) fail(`is not a pointer, so it cannot be "${direction}".`);
  if (parameter.destroys) fail('is not a handle, so it cannot be destroyed.');
  if (direction === 'string' && type !== 'const char*')
    fail('is a string: its type must be const char*.');
  checkOwner(call, parameter, types);
  if (direction === 'string' || direction === 'pointer') return;
  const element = withoutConst(pointee(type));
  if (direction !== 'in' && type.startsWith('const '))
    fail(`is ${type}, so it cannot be "${direction}".`);
  if (!types.handleKind(element)) {
    const why = types.whyNotBytes(element);
    if (why)
      fail(
        `cannot be sent: ${why}. Use "frame: custom", or "pointer" for an address that ` +
          'is not dereferenced.',
      );
  } else if (direction === 'inout') fail('is a handle: use "in" or "out".');
  if (types.handleKind(element) && parameter.optional && direction === 'in')
    fail('is a handle: an absent one is 0, not a null pointer. Remove "?".');
  if (parameter.optional && parameter.count !== undefined && direction === 'out')
    fail('is an output array, which cannot be optional: remove "?".');
  const mayChange = !type.startsWith('const ') && !types.handleKind(element);
  if (direction === 'in' && parameter.count !== undefined && mayChange)
    fail(`is ${type}: an input array must be const.`);
  if (direction !== 'in' && call.mode === 'async')
    fail('is an output, but an async call has no reply.');
  checkCount(call, parameter, types);
}

function checkValue(call: Call, parameter: Parameter, types: TypeTable): void {
  const fail = (sentence: string): never =>
    parameter.place.fail(`${call.name}: ${parameter.name} ${sentence}`);
  if (isPointer(parameter.type))
    fail(
      'is a pointer: add its direction (out, in, inout, string, pointer …), or "frame: custom".',
    );
  if (parameter.owner !== undefined) fail('is not a new handle, so it cannot have an owner.');
  const handle = types.handleKind(parameter.type);
  if (handle === undefined) {
    const why = types.whyNotBytes(parameter.type);
    if (why) fail(`cannot be sent: ${why}. Use "frame: custom".`);
    if (parameter.destroys) fail('is not a handle, so it cannot be destroyed.');
  }
  if (parameter.destroys && (!call.ordered || call.mode === 'wait')) {
    fail(
      'is destroyed, so the call must keep its place in the order: use neither "mode: wait" ' +
        'nor "ordered: false".',
    );
  }
}

function checkCount(call: Call, parameter: Parameter, types: TypeTable): void {
  if (parameter.count === undefined) return;
  const count = call.parameters.find((other) => other.name === parameter.count);
  if (!count)
    parameter.place.fail(
      `${call.name}: ${parameter.count}, the length of ${parameter.name}, is not a parameter.`,
    );
  else if (
    count.direction !== 'value' ||
    !/^(size_t|unsigned|int|u?int\d+_t)/.test(types.resolve(count.type))
  ) {
    parameter.place.fail(
      `${call.name}: ${count.name}, the length of ${parameter.name}, is not an integer.`,
    );
  }
}

function checkOwner(call: Call, parameter: Parameter, types: TypeTable): void {
  if (parameter.owner === undefined) return;
  if (parameter.direction !== 'out' || !types.handleKind(pointee(parameter.type))) {
    parameter.place.fail(
      `${call.name}: ${parameter.name} is not a new handle, so it cannot have an owner.`,
    );
  }
  const owner = call.parameters.find((other) => other.name === parameter.owner);
  if (owner?.direction !== 'value' || !types.handleKind(owner.type)) {
    parameter.place.fail(
      `${call.name}: ${parameter.owner}, the owner of ${parameter.name}, ` +
        'is not a parameter with a handle.',
    );
  }
}
