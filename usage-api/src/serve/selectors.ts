import { UsageError } from '../errors.js';

type Labels = Readonly<Record<string, string>>;
export type Selector<T> = (object: T) => boolean;

const NAME = '[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?';
const KEY = `(?:${NAME}/)?${NAME}`;
const VALUE = '[A-Za-z0-9._-]*';
/** One requirement: `!key`, `key`, `key=value`, `key in (a,b)`, `key > 1`. */
const REQUIREMENT = new RegExp(
  `^\\s*(?:(?<absent>!)\\s*(?<absentKey>${KEY})|(?<key>${KEY})(?:\\s*(?<operator>==?|!=|>|<)\\s*(?<value>${VALUE})|\\s+(?<set>in|notin)\\s*\\((?<values>[^()]*)\\))?)\\s*$`,
);

/** @throws UsageError SELECTOR_WRONG */
export function labelSelector(text: string): Selector<Labels | undefined> {
  const requirements = split(text).map((part) => requirement(part, text));
  return (labels = {}) => requirements.every((holds) => holds(labels));
}

/** Commas in parentheses separate values, others requirements. */
function split(text: string): string[] {
  return text.trim() === '' ? [] : text.split(/,(?![^(]*\))/);
}

function requirement(part: string, all: string): Selector<Labels> {
  const found = REQUIREMENT.exec(part)?.groups;
  if (!found)
    throw wrong('The label selector', all, `"${part.trim()}" is no requirement such as key=value, key!=value, key in (a,b), key or !key`);
  const { absentKey, key = '', operator, value = '', set, values = '' } = found;
  if (absentKey !== undefined) return (labels) => labels[absentKey] === undefined;
  if (set !== undefined) {
    const listed = values.split(',').map((one) => one.trim());
    return (labels) => (labels[key] !== undefined && listed.includes(labels[key])) === (set === 'in');
  }
  if (operator === undefined) return (labels) => labels[key] !== undefined;
  if (operator === '!=') return (labels) => labels[key] !== value;
  if (operator === '=' || operator === '==') return (labels) => labels[key] === value;
  const sign = operator === '>' ? 1 : -1;
  return (labels) => labels[key] !== undefined && (Number(labels[key]) - Number(value)) * sign > 0;
}

/** @param fields how each field that can be selected by is read. @throws UsageError SELECTOR_WRONG */
export function fieldSelector<T>(text: string, fields: Readonly<Record<string, (object: T) => string>>): Selector<T> {
  const known = Object.keys(fields).join(', ');
  const requirements = split(text).map((part) => {
    const [, name = '', operator, value = ''] = /^\s*([\w.]+)\s*(==?|!=)\s*(.*?)\s*$/.exec(part) ?? [];
    const read = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!read) throw wrong('The field selector', text, `allowed are =, == and != with ${known}`);
    return (object: T) => (read(object) === value) === (operator !== '!=');
  });
  return (object) => requirements.every((holds) => holds(object));
}

function wrong(kind: string, selector: string, reason: string): UsageError {
  return new UsageError('SELECTOR_WRONG', { kind, selector, reason });
}
