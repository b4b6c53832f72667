import type { Kind } from './kinds.js';

/** What must hold for another option when this one is given. */
interface Need {
  readonly key: string;
  /** What its value begins with. */
  readonly prefix?: string;
}

interface Details {
  readonly help: string;
  /** In the syntax of the option. */
  readonly default?: string;
  /** What holds without a value, when there is no default; completes "default:". */
  readonly otherwise?: string;
  /** True when a running gpu-proxy follows a change. */
  readonly reloadable?: boolean;
  /** False if the variable of this name has another meaning. */
  readonly variable?: boolean;
  readonly needs?: readonly Need[];
  /** Short flag: `-n`. */
  readonly short?: string;
}

/**
 * One option, declared once: its flag, its variable, its key in the file, its help and its page
 * come from here.
 */
export class Option<T> {
  constructor(
    readonly kind: Kind<T>,
    readonly details: Details,
  ) {}

  /** What help and pages say after "default:". */
  get defaultText(): string {
    return this.details.default ?? this.details.otherwise ?? 'none';
  }
}

export function option<T>(
  kind: Kind<T>,
  details: Details & { readonly default: string },
): Option<T>;
export function option<T>(
  kind: Kind<T>,
  details: Details & { readonly otherwise: string },
): Option<T | undefined>;
export function option<T>(kind: Kind<T>, details: Details): Option<T | undefined> {
  return new Option<T | undefined>(kind, details);
}

export interface Schema {
  readonly [name: string]: Option<unknown> | Schema;
}

/** The values of a schema, nested as it is. */
export type Values<S> = {
  readonly [K in keyof S]: S[K] extends Option<infer T> ? T : Values<S[K]>;
};

/** An option under the names by which users know it. */
export class NamedOption {
  /** In the file, dots for nesting: `limits.pinnedMemory`. */
  readonly key: string;
  /** `--limits-pinned-memory` */
  readonly flag: string;
  /** `NVIDIA_VIRTUAL_LIMITS_PINNED_MEMORY`; undefined when it has none. */
  readonly variable: string | undefined;

  constructor(
    path: readonly string[],
    readonly option: Option<unknown>,
  ) {
    const words = path.flatMap((name) => name.split(/(?=[A-Z])/)).map((word) => word.toLowerCase());
    this.key = path.join('.');
    this.flag = `--${words.join('-')}`;
    this.variable =
      option.details.variable === false
        ? undefined
        : `NVIDIA_VIRTUAL_${words.join('_').toUpperCase()}`;
  }
}

export function optionsOf(schema: Schema, path: readonly string[] = []): NamedOption[] {
  return Object.entries(schema).flatMap(([name, item]) => {
    const here = [...path, name];
    return item instanceof Option ? [new NamedOption(here, item)] : optionsOf(item, here);
  });
}

/** Values in the shape of the schema, each one asked for by its key. */
export function nest<S extends Schema>(
  schema: S,
  valueFor: (key: string) => unknown,
  path: readonly string[] = [],
): Values<S> {
  const entries = Object.entries(schema).map(([name, item]) => {
    const here = [...path, name];
    return [name, item instanceof Option ? valueFor(here.join('.')) : nest(item, valueFor, here)];
  });
  return Object.fromEntries(entries);
}

/** The value of one key. */
export function valueAt(values: object, key: string): unknown {
  return key
    .split('.')
    .reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], values);
}
