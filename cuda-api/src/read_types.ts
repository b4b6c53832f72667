import { normalise, parseDeclaration } from './c_declaration.js';
import type { Located } from './source.js';
import type { Aggregate, Enumeration, Member, TypeDeclaration } from './types.js';

const KEYS = ['enum', 'handle', 'typedef', 'struct', 'union', 'function', 'macro'] as const;
const DETAILS = [
  'header',
  'values',
  'tag',
  'kind',
  'type',
  'address',
  'align',
  'fields',
  'returns',
  'parameters',
  'value',
] as const;
type Details = Partial<Record<(typeof KEYS)[number] | (typeof DETAILS)[number], Located>>;

/** One entry of a file in cuda-api/types/. */
export function readType(entry: Located): TypeDeclaration {
  const found = entry.fields([...KEYS, ...DETAILS]);
  const kind =
    KEYS.find((key) => found[key]) ?? entry.fail(`a type is one of: ${KEYS.join(', ')}.`);
  const name = need(entry, found, kind).text();
  const declared = { name, place: entry, ...(found.header ? { header: found.header.text() } : {}) };
  const handleKind = found.kind ? { handleKind: found.kind.text() } : {};
  switch (kind) {
    case 'enum':
      return { kind, ...declared, values: readValues(need(entry, found, 'values')) };
    case 'handle':
      return { kind, ...declared, tag: need(entry, found, 'tag').text(), ...handleKind };
    case 'typedef':
      return {
        kind,
        ...declared,
        type: normalise(need(entry, found, 'type').text()),
        ...handleKind,
        address: found.address?.oneOf(['true']) === 'true',
      };
    case 'struct':
    case 'union':
      return { kind, ...declared, ...readAggregate(found, entry) };
    case 'function': {
      const parameters = need(entry, found, 'parameters').items();
      return {
        kind,
        ...declared,
        returns: need(entry, found, 'returns').text(),
        parameters: parameters.map((each) => normalise(each.text())),
      };
    }
    case 'macro':
      return { kind, ...declared, value: need(entry, found, 'value').text() };
  }
}

function need(entry: Located, found: Details, key: keyof Details): Located {
  return found[key] ?? entry.fail(`"${key}" is missing.`);
}

function readValues(values: Located): Enumeration['values'] {
  return values.pairs().map(({ key, value }) => {
    if (value.isText) return { name: key.text(), value: value.integer() };
    const found = value.fields(['value', 'text']);
    const number = found.value ?? value.fail('"value" is missing.');
    return {
      name: key.text(),
      value: number.integer(),
      ...(found.text ? { text: found.text.text() } : {}),
    };
  });
}

function readAggregate(found: Details, entry: Located): Pick<Aggregate, 'members' | 'align'> {
  const members = need(entry, found, 'fields').items().map(readMember);
  return { members, ...(found.align ? { align: found.align.integer() } : {}) };
}

/** `type name`, `type name: opaque`, or a nested struct or union with its fields. */
function readMember(item: Located): Member {
  if (item.isText) return readField(item, false);
  const pairs = item.pairs();
  const first = pairs[0] ?? item.fail('a field is expected here.');
  const word = first.key.text();
  if (word !== 'struct' && word !== 'union') {
    first.value.oneOf(['opaque']);
    return readField(first.key, true);
  }
  const found = item.fields(['struct', 'union', 'fields']);
  const members = (found.fields ?? item.fail('"fields" is missing.')).items().map(readMember);
  return {
    nested: word,
    name: first.value.isText ? (first.value.text() === 'null' ? '' : first.value.text()) : '',
    members,
  };
}

function readField(place: Located, opaque: boolean): Member {
  const field =
    parseDeclaration(place.text()) ?? place.fail(`"${place.text()}" is not a type and a name.`);
  return { ...field, opaque };
}
