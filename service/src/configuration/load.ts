import { ProxyError } from '../errors.js';
import { readFileSource } from './file.js';
import {
  type NamedOption,
  nest,
  type Option,
  optionsOf,
  type Schema,
  type Values,
} from './option.js';
import { type Entry, environmentSource, flagSource, type Source } from './source.js';

export interface Given {
  /** Flags of `flagsOf`, as collected by commander. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly environment: NodeJS.ProcessEnv;
}

/** Schema of the option that names the configuration file. */
interface FileOption extends Schema {
  readonly config: Option<string | undefined>;
}

/**
 * Loads options from flags, variables, file and defaults, in this order of precedence.
 * @param file the option that names the file
 * @throws ProxyError that lists all problems
 */
export function loadOptionsWithFile<S extends Schema>(
  schema: S,
  file: FileOption,
  given: Given,
): Values<S> {
  const problems: ProxyError[] = [];
  const sources = [flagSource(given.flags), environmentSource(given.environment)];
  const { config } = resolve(file, sources, problems);
  const read = config === undefined ? undefined : readFileSource(config, schema);
  problems.push(...(read?.problems ?? []));
  const values = resolve(schema, read ? [...sources, read.source] : sources, problems);
  refuse(problems);
  return values;
}

/**
 * Loads options from flags and variables. Flags have precedence. @throws ProxyError that lists all
 * problems
 */
export function loadOptions<S extends Schema>(schema: S, { flags, environment }: Given): Values<S> {
  const problems: ProxyError[] = [];
  const values = resolve(schema, [flagSource(flags), environmentSource(environment)], problems);
  refuse(problems);
  return values;
}

/** Loads options from flags only. @throws ProxyError that lists all problems */
export function loadFlags<S extends Schema>(schema: S, flags: Given['flags']): Values<S> {
  const problems: ProxyError[] = [];
  const values = resolve(schema, [flagSource(flags)], problems);
  refuse(problems);
  return values;
}

interface Resolved {
  readonly value: unknown;
  /** Undefined for a default. */
  readonly where?: string;
}

function resolve<S extends Schema>(
  schema: S,
  sources: readonly Source[],
  problems: ProxyError[],
): Values<S> {
  const options = optionsOf(schema);
  const resolved = new Map(
    options.map((named) => [named.key, resolveOption(named, sources, problems)]),
  );
  for (const named of options) checkNeeds(named, resolved, problems);
  return nest(schema, (key) => resolved.get(key)?.value);
}

/** The first source wins, but the values of all sources are validated. */
function resolveOption(
  named: NamedOption,
  sources: readonly Source[],
  problems: ProxyError[],
): Resolved {
  const given = sources.map((source) => source(named)).filter((entries) => entries !== undefined);
  const values = given.map((entries) => parse(named.option, entries, problems));
  return given.length === 0
    ? { value: defaultOf(named.option) }
    : { value: values[0], where: given[0]?.[0]?.where ?? named.flag };
}

function parse(
  option: Option<unknown>,
  entries: readonly Entry[],
  problems: ProxyError[],
): unknown {
  const { kind } = option;
  const parsed = entries.map(({ where, text }) => {
    const value = kind.entry(text);
    if (value === undefined)
      problems.push(
        new ProxyError('OPTION_VALUE', { where, value: quote(text), allowed: kind.allowed }),
      );
    return value;
  });
  return kind.combine(parsed.filter((value) => value !== undefined));
}

function defaultOf({ kind, details }: Option<unknown>): unknown {
  return details.default === undefined ? undefined : kind.combine([kind.entry(details.default)]);
}

function checkNeeds(
  { key, option }: NamedOption,
  resolved: ReadonlyMap<string, Resolved>,
  problems: ProxyError[],
): void {
  const where = resolved.get(key)?.where;
  if (where === undefined) return;
  for (const { key: needed, prefix } of option.details.needs ?? []) {
    const other = resolved.get(needed);
    const wrongAnyway = other?.where !== undefined && other.value === undefined;
    if (wrongAnyway || (other?.where !== undefined && String(other.value).startsWith(prefix ?? '')))
      continue;
    problems.push(
      new ProxyError('OPTION_NEEDS', {
        where,
        needed: prefix === undefined ? needed : `${needed} to begin with ${prefix}`,
      }),
    );
  }
}

/** Masks a password in a URL, so that it does not appear in a logged message. */
function quote(text: string): string {
  return JSON.stringify(text.replace(/\/\/[^/@]*@/, '//***@'));
}

function refuse(problems: readonly ProxyError[]): void {
  const [first, ...others] = problems;
  if (first === undefined) return;
  if (others.length === 0) throw first;
  throw new ProxyError('CONFIGURATION_WRONG', {
    count: problems.length,
    problems: problems.map(({ message }) => `\n  ${message}`).join(''),
  });
}
