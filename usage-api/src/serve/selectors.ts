import { UsageError } from '../errors.js';

type Labels = Readonly<Record<string, string>>;
export type Selector<T> = (object: T) => boolean;

/** Maximum length of a selector. A longer one is refused without parsing it. */
export const MAXIMUM_LENGTH = 4096;
const MAXIMUM_REQUIREMENTS = 100;
/** Maximum length of a selector quoted in an error message. */
const MAXIMUM_QUOTED = 200;
const KEY_CHARACTERS = /^[A-Za-z0-9._/-]+/;
const NAME = /^[A-Za-z0-9._-]+$/;
const VALUE = /^[A-Za-z0-9._-]*$/;
const OPERATORS = ['==', '=', '!='] as const;
const SETS = ['in', 'notin'] as const;

/**
 * Parses requirements such as `!key`, `key`, `key=value` and `key in (a,b)`, separated by commas.
 * All parsers here take linear time.
 * @throws UsageError SELECTOR_WRONG
 */
export function labelSelector(text: string): Selector<Labels | undefined> {
  const kind = 'The label selector';
  const requirements = split(kind, text).map((part) => {
    const holds = requirement(part.trim());
    if (!holds)
      throw wrong(
        kind,
        text,
        `"${shortened(part.trim())}" is not of the form key=value, key!=value, key in (a,b), ` +
          'key or !key',
      );
    return holds;
  });
  return (labels = {}) => requirements.every((holds) => holds(labels));
}

/** Splits at commas outside of parentheses. @throws UsageError SELECTOR_WRONG */
function split(kind: string, text: string): string[] {
  if (text.length > MAXIMUM_LENGTH)
    throw wrong(kind, text, `it has ${text.length} characters, the limit is ${MAXIMUM_LENGTH}`);
  if (text.trim() === '') return [];
  const parts: string[] = [];
  let begin = 0;
  let inside = false;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '(') inside = true;
    else if (text[at] === ')') inside = false;
    else if (text[at] === ',' && !inside) {
      parts.push(text.slice(begin, at));
      begin = at + 1;
    }
  }
  parts.push(text.slice(begin));
  if (parts.length > MAXIMUM_REQUIREMENTS)
    throw wrong(
      kind,
      text,
      `it has ${parts.length} requirements, the limit is ${MAXIMUM_REQUIREMENTS}`,
    );
  return parts;
}

/** Undefined if the text is not a requirement. */
function requirement(text: string): Selector<Labels> | undefined {
  if (text.startsWith('!')) {
    const absent = text.slice(1).trim();
    return isKey(absent) ? (labels) => !Object.hasOwn(labels, absent) : undefined;
  }
  const key = KEY_CHARACTERS.exec(text)?.[0] ?? '';
  if (!isKey(key)) return undefined;
  const rest = text.slice(key.length).trim();
  return rest === ''
    ? (labels) => Object.hasOwn(labels, key)
    : (comparison(key, rest) ?? membership(key, rest));
}

function comparison(key: string, rest: string): Selector<Labels> | undefined {
  const operator = OPERATORS.find((each) => rest.startsWith(each));
  if (operator === undefined) return undefined;
  const value = rest.slice(operator.length).trim();
  if (!VALUE.test(value)) return undefined;
  return (labels) => (labels[key] === value) === (operator !== '!=');
}

function membership(key: string, rest: string): Selector<Labels> | undefined {
  const set = SETS.find(
    (each) => rest.startsWith(each) && rest.slice(each.length).trimStart().startsWith('('),
  );
  if (set === undefined || !rest.endsWith(')')) return undefined;
  const inner = rest.slice(rest.indexOf('(') + 1, -1);
  if (inner.includes('(') || inner.includes(')')) return undefined;
  const listed = new Set(inner.split(',').map((one) => one.trim()));
  return (labels) =>
    (Object.hasOwn(labels, key) && listed.has(labels[key] ?? '')) === (set === 'in');
}

/** `name` or `prefix/name`. Each part begins and ends with a letter or digit. */
function isKey(text: string): boolean {
  const parts = text.split('/');
  const isAlphanumeric = (character = '') => /^[A-Za-z0-9]$/.test(character);
  return (
    parts.length <= 2 &&
    parts.every((part) => NAME.test(part) && isAlphanumeric(part[0]) && isAlphanumeric(part.at(-1)))
  );
}

/**
 * @param fields reads each selectable field
 * @throws UsageError SELECTOR_WRONG
 */
export function fieldSelector<T>(
  text: string,
  fields: Readonly<Record<string, (object: T) => string>>,
): Selector<T> {
  const known = Object.keys(fields).join(', ');
  const kind = 'The field selector';
  const requirements = split(kind, text).map((part) => {
    const requirement = part.trim();
    const name = /^[\w.]+/.exec(requirement)?.[0] ?? '';
    const rest = requirement.slice(name.length).trim();
    const operator = OPERATORS.find((each) => rest.startsWith(each));
    const read = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!read || operator === undefined)
      throw wrong(kind, text, `it must use =, == or != with one of ${known}`);
    const value = rest.slice(operator.length).trim();
    return (object: T) => (read(object) === value) === (operator !== '!=');
  });
  return (object) => requirements.every((holds) => holds(object));
}

function wrong(kind: string, selector: string, reason: string): UsageError {
  return new UsageError('SELECTOR_WRONG', { kind, selector: shortened(selector), reason });
}

function shortened(text: string): string {
  return text.length > MAXIMUM_QUOTED ? `${text.slice(0, MAXIMUM_QUOTED)}…` : text;
}
