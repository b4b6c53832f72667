import path from 'node:path';
import { MEMORY_SIZES, readMemorySize } from '../memory-size.js';

/**
 * The type of an option: parses its text, which comes from a flag, a variable or a file.
 */
export interface Kind<T> {
  /** Shown by help: `--window <duration>`. */
  readonly placeholder: string;
  /** Completes the sentence "VALUE must be …". */
  readonly allowed: string;
  /**
   * - `many`: a repeated flag, a comma-separated variable, or a list.
   * - `perGpu`: the same, or a mapping from GPUs to values.
   */
  readonly shape: 'one' | 'many' | 'perGpu';
  /** Parses one entry. Undefined: invalid. */
  entry(text: string): unknown;
  /** Combines all entries of an option, at least one, in order. */
  combine(entries: readonly unknown[]): T;
}

function one<T>(
  placeholder: string,
  allowed: string,
  entry: (text: string) => T | undefined,
): Kind<T> {
  return { placeholder, allowed, shape: 'one', entry, combine: (entries) => entries[0] as T };
}

export function many<T>(kind: Kind<T>): Kind<readonly T[]> {
  return { ...kind, shape: 'many', combine: (entries) => entries as T[] };
}

export function choice<Word extends string>(...words: readonly Word[]): Kind<Word> {
  return one(words.join('|'), words.join(', ').replace(/, ([^,]+)$/, ' or $1'), (text) =>
    words.find((word) => word === text),
  );
}

export const trueOrFalse = one('true|false', 'true or false', (text) =>
  text === 'true' ? true : text === 'false' ? false : undefined,
);

export function wholeNumber(least: number, most: number, placeholder = 'count'): Kind<number> {
  return one(placeholder, `a whole number from ${least} to ${most}`, (text) =>
    within(least, most, /^-?\d{1,9}$/.test(text) ? Number(text) : NaN),
  );
}

/** A number with at most two decimal places. */
export function factor(least: number, most: number): Kind<number> {
  return one('factor', `a number from ${least} to ${most}, for example 1.5`, (text) =>
    within(least, most, /^\d{1,3}(\.\d{1,2})?$/.test(text) ? Number(text) : NaN),
  );
}

/** A duration in microseconds. */
export function duration(least: string, most: string): Kind<number> {
  const [from, to] = [microseconds(least), microseconds(most)];
  return one('duration', `a duration from ${least} to ${most} in us, ms or s`, (text) =>
    within(from, to, microseconds(text)),
  );
}

/** A memory size in bytes. */
export const memorySize = one('size', MEMORY_SIZES, readMemorySize);

/** A limit in bytes, which may be 0. */
export const memoryLimit = one('size', `0, or ${MEMORY_SIZES}`, (text) =>
  text.trim() === '0' ? 0 : readMemorySize(text),
);

/** An integer from 1 to 100. */
export const percent = one('percent', 'a whole percentage from 1 to 100, for example 25', (text) =>
  within(1, 100, /^\d{1,3} ?%?$/.test(text) ? Number.parseInt(text, 10) : NaN),
);

/** Converted to an absolute path, relative to the working directory. */
export const filePath = one('path', 'a path', (text) =>
  text === '' ? undefined : path.resolve(text),
);

export const logTarget = one(
  'path',
  'a path, or - for standard output',
  (text) => (text === '-' ? text : filePath.entry(text)) as string | undefined,
);

/** @param more characters allowed after the first one, in addition to letters, digits and `._-` */
function name(most: number, more = ''): Kind<string> {
  const pattern = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._${more}-]{0,${most - 1}}$`);
  const allowed =
    `up to ${most} of A-Z a-z 0-9 . _ ${more}${more && ' '}-, starting with a ` +
    `letter or a digit`;
  return one('name', allowed, (text) => (pattern.test(text) ? text : undefined));
}

/** Accepts all Kubernetes node names, and only names that are safe in the ledger's keys. */
export const nodeName = name(253);
export const userName = name(128);
/** An object of Kubernetes: NAMESPACE/NAME. */
export const objectName = name(317, '/');
/** May contain a slash, to name namespace and pod. */
export const allocationName = name(128, '/');

/** An index, or a UUID in the driver's format. */
const GPU_NAME = /^(\d{1,4}|GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

export const gpuName = one('index|uuid', "a GPU's index (0, 1, ...) or UUID (GPU-...)", (text) =>
  GPU_NAME.test(text) ? text : undefined,
);

/** A value for all GPUs, and values for single GPUs. */
export interface PerGpu<T> {
  readonly all: T | undefined;
  /** Keys are indexes or UUIDs, as given. */
  readonly some: ReadonlyMap<string, T>;
}

/** The value for one GPU: by its UUID, otherwise by its index, otherwise the value for all. */
export function forGpu<T>(
  { all, some }: PerGpu<T>,
  gpu: { readonly uuid: string; readonly index: number },
  otherwise: T,
): T {
  return some.get(gpu.uuid.toLowerCase()) ?? some.get(String(gpu.index)) ?? all ?? otherwise;
}

export function perGpu<T>(kind: Kind<T>): Kind<PerGpu<T>> {
  return {
    placeholder: `[gpu=]${kind.placeholder}`,
    allowed: `${kind.allowed}, for all GPUs, or GPU=VALUE for the one with this index or UUID`,
    shape: 'perGpu',
    entry: (text) => perGpuEntry(kind, text),
    combine: (entries) => {
      const pairs = entries as readonly (readonly [string, T])[];
      const all = pairs.findLast(([gpu]) => gpu === '')?.[1];
      return { all, some: new Map(pairs.filter(([gpu]) => gpu !== '')) };
    },
  };
}

function perGpuEntry<T>(kind: Kind<T>, text: string): readonly [string, T] | undefined {
  const [, gpu = '', rest = ''] = /^(?:([^=]*)=)?(.*)$/s.exec(text) ?? [];
  const value = kind.entry(rest) as T | undefined;
  const named = !text.includes('=') || GPU_NAME.test(gpu);
  return value !== undefined && named ? [gpu.toLowerCase(), value] : undefined;
}

export interface UidRange {
  readonly first: number;
  readonly last: number;
}

const LEAST_UID = 1000;
const NOBODY = 65534;
const MOST_UID = 2 ** 32 - 2;

/** Excludes system users (below 1000) and `nobody`, which other software uses. */
export const uidRange = one<UidRange>(
  'first-last',
  `a range FIRST-LAST of user ids between ${LEAST_UID} and ${MOST_UID} without ${NOBODY} ` +
    '(nobody), for example 100000-165535',
  (text) => {
    const [, first = NaN, last = NaN] = /^(\d{1,10})-(\d{1,10})$/.exec(text)?.map(Number) ?? [];
    const allowed =
      LEAST_UID <= first && first <= last && last <= MOST_UID && (last < NOBODY || first > NOBODY);
    return allowed ? { first, last } : undefined;
  },
);

const REDIS_URL =
  /^(rediss?:\/\/([\w.-]+|\[[\da-fA-F:.]+\])(:\d{1,5})?(\/\d{0,4})?|unix:\/\/\/\S+)$/;

/** Refuses passwords, because other processes can read the command line and the environment. */
export const redisUrl = one(
  'url',
  'redis://HOST[:PORT][/DATABASE], rediss:// for TLS, or unix:///PATH, without a user and password',
  (text) => (REDIS_URL.test(text) && URL.canParse(text) ? text : undefined),
);

/**
 * Without a host: all addresses of this machine, IPv6 and IPv4 as available.
 */
export type NetworkAddress = { readonly host?: string; readonly port: number };
export type Address = NetworkAddress | { readonly path: string };

/** Port 0: any free port. */
export const address = one<Address>(
  'address',
  'HOST:PORT, [HOST]:PORT, :PORT for all addresses, or the absolute path of a Unix socket',
  (text) => {
    if (text.startsWith('/')) return { path: path.resolve(text) };
    const [, bracketed, host = bracketed, port] =
      /^(?:\[([\da-f:.]+)\]|([\w.-]+))?:(\d{1,5})$/i.exec(text) ?? [];
    return Number(port) < 65536
      ? { ...(host !== undefined && { host }), port: Number(port) }
      : undefined;
  },
);

export function addressText(address: Address): string {
  if ('path' in address) return address.path;
  const { host = '', port } = address;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

const MICROSECONDS: Record<string, number> = { us: 1, ms: 1e3, s: 1e6 };

function microseconds(text: string): number {
  const match = /^(\d{1,9}(?:\.\d{1,6})?) ?(us|ms|s)$/.exec(text);
  return match ? Math.round(Number(match[1]) * (MICROSECONDS[match[2] as string] as number)) : NaN;
}

function within(least: number, most: number, value: number): number | undefined {
  return value >= least && value <= most ? value : undefined;
}
