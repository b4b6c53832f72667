import { parseDeclaration } from './c_declaration.js';
import {
  ALLOCATES,
  BACKENDS,
  type Call,
  type Direction,
  MODES,
  type Parameter,
  SUBMISSIONS,
  WINDOWS,
} from './calls.js';
import type { Located } from './source.js';

const KEYS = [
  'call',
  'internal',
  'names',
  'header',
  'ptsz',
  'ptds',
  'parameters',
  'mode',
  'same',
  'result',
  'why',
  'client',
  'worker',
  'frame',
  'ordered',
  'submits',
  'window',
  'allocates',
  'backend',
] as const;

/** One entry of a file in cuda-api/calls/. */
export function readCall(entry: Located): Call {
  const found = entry.fields(KEYS);
  const name = found.call?.text() ?? entry.fail('"call" is missing.');
  const internal = readFlag(found.internal, false);
  if (!internal && !found.names)
    entry.fail('"names" is missing: names for cuGetProcAddress, each with its first version.');
  return {
    name,
    place: entry,
    internal,
    ...(found.header ? { header: found.header.text() } : {}),
    names:
      found.names
        ?.pairs()
        .map(({ key, value }) => ({ name: key.text(), version: value.integer() })) ?? [],
    ...readPerThread(found.ptsz, found.ptds),
    parameters: found.parameters?.items().map(readParameter) ?? [],
    mode: (found.mode ?? entry.fail(`"mode" is missing. Use one of: ${MODES.join(', ')}.`)).oneOf(
      MODES,
    ),
    ...(found.same ? { same: found.same.text() } : {}),
    ...(found.result ? { result: found.result.text() } : {}),
    ...(found.why ? { why: found.why.text() } : {}),
    clientCustom: found.client?.oneOf(['custom']) === 'custom',
    workerCustom: found.worker?.oneOf(['custom']) === 'custom',
    frameCustom: found.frame?.oneOf(['custom']) === 'custom',
    ordered: readFlag(found.ordered, true),
    ...(found.submits ? { submits: found.submits.oneOf(SUBMISSIONS) } : {}),
    ...(found.window ? { window: found.window.oneOf(WINDOWS) } : {}),
    ...(found.backend ? { backend: found.backend.oneOf(BACKENDS) } : {}),
    ...(found.allocates ? { allocates: found.allocates.oneOf(ALLOCATES) } : {}),
  };
}

function readFlag(place: Located | undefined, otherwise: boolean): boolean {
  return place ? place.oneOf(['true', 'false']) === 'true' : otherwise;
}

function readPerThread(
  ptsz: Located | undefined,
  ptds: Located | undefined,
): Pick<Call, 'perThread'> {
  if (ptsz && ptds) return ptds.fail('a call cannot have both a ptsz and a ptds variant.');
  if (ptsz) return { perThread: { suffix: 'ptsz', version: ptsz.integer() } };
  if (ptds) return { perThread: { suffix: 'ptds', version: ptds.integer() } };
  return {};
}

/** `type name`, or `type name: words`. */
function readParameter(item: Located): Parameter {
  if (item.isText) return { ...readDeclaration(item), ...readWords(item, '') };
  const [first, ...more] = item.pairs();
  if (!first || more.length > 0)
    return item.fail('a parameter is written as `type name` or `type name: words`.');
  return { ...readDeclaration(first.key), ...readWords(first.value, first.value.text()) };
}

function readDeclaration(place: Located): { type: string; name: string; place: Located } {
  const declaration = parseDeclaration(place.text());
  if (!declaration || declaration.dimensions.length > 0)
    return place.fail(`"${place.text()}" is not a type and a name.`);
  return { type: declaration.type, name: declaration.name, place };
}

const DIRECTION = /^(out|in)(\?)?(?:\[(\w+)\])?$|^(inout|string|pointer)$/;

function readWords(place: Located, text: string): Omit<Parameter, 'type' | 'name' | 'place'> {
  const words: Omit<Parameter, 'type' | 'name' | 'place'> = {
    direction: 'value',
    optional: false,
    destroys: false,
  };
  for (const word of text.split(/\s+/).filter((each) => each !== '')) {
    const direction = DIRECTION.exec(word);
    const owner = /^owner=(\w+)$/.exec(word)?.[1];
    if (direction) {
      words.direction = (direction[1] ?? direction[4]) as Direction;
      words.optional = direction[2] !== undefined;
      if (direction[3] !== undefined) words.count = direction[3];
    } else if (word === 'destroys') words.destroys = true;
    else if (owner !== undefined) words.owner = owner;
    else
      place.fail(
        `"${word}" is not a known word for a parameter. Known words: ` +
          'out, out?, in, in?, inout, in[n], in?[n], out[n], string, pointer, destroys, ' +
          'owner=NAME.',
      );
  }
  return words;
}
