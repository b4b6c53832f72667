import type { Kind } from './kinds.js';

/** Another option that this one requires. */
interface Need {
  readonly key: string;
  /** Required prefix of its value. */
  readonly prefix?: string;
}

interface Details {
  readonly help: string;
  /** Default value, in the syntax of the option. */
  readonly default?: string;
  /** Describes the effect of no value, if there is no default. Completes "default:". */
  readonly otherwise?: string;
  /** Whether a running gpu-proxy applies a change. */
  readonly reloadable?: boolean;
  /** False: the option has no variable, because the name has another meaning. */
  readonly variable?: boolean;
  readonly needs?: readonly Need[];
  /** Short flag: `-n`. */
  readonly short?: string;
}

/**
 * Declares one option. Its flag, variable, key in the file, help and documentation are derived
 * from it.
 */
export class Option<T> {
  constructor(
    readonly kind: Kind<T>,
    readonly details: Details,
  ) {}

  /** Text after "default:" in help and documentation. */
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

/** The values of a schema, with the same nesting. */
export type Values<S> = {
  readonly [K in keyof S]: S[K] extends Option<infer T> ? T : Values<S[K]>;
};

/** An option with its key, flag and variable. */
export class NamedOption {
  /** Key in the file, with dots for nesting: `limits.pinnedMemory`. */
  readonly key: string;
  /** `--limits-pinned-memory` */
  readonly flag: string;
  /** `NVIDIA_VIRTUAL_LIMITS_PINNED_MEMORY`; undefined: no variable. */
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

/** Builds values in the shape of the schema. `valueFor` returns the value of each key. */
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
