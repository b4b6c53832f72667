import type { V1Container, V1Pod } from '@kubernetes/client-node';
import type { Latency, Policy, SharingMode, TraceMode } from '@nvidia-virtual/ledger';
import { ANNOTATION, RESOURCE } from './names.js';
import { QUANTITIES, readQuantity } from './quantity.js';
import { askingByMemory, type SlotSize, slotsFor } from './slot-size.js';

/**
 * The GPU request of one container. Undefined values follow from its slots or the node's defaults.
 */
export interface ContainerRequest {
  readonly container: string;
  /**
   * Whether it is an init container, whose slots are reused by later containers. False for
   * sidecars.
   */
  readonly init: boolean;
  readonly slots: number;
  /** Number of GPUs over which the slots are spread evenly. */
  readonly gpus: number;
  /** Bytes per GPU. */
  readonly memory: number | undefined;
  /** Percent of the time of each GPU. */
  readonly cores: number | undefined;
  readonly policy: Policy | undefined;
  /** -100 to 100, higher first. A PriorityClass has no effect on it. */
  readonly priority: number | undefined;
  readonly mode: SharingMode | undefined;
  readonly latency: Latency | undefined;
  /** The report that its programs write to standard error when they exit. */
  readonly trace: TraceMode | undefined;
}

/** `binpack` fills a GPU before the next one; `spread` takes the emptiest GPU. */
export type Strategy = 'binpack' | 'spread';

/** The GPU request of a pod. */
export interface PodRequest {
  readonly containers: readonly ContainerRequest[];
  /**
   * Substrings of GPU names, case-insensitive. A GPU must match one of them, and none of those that
   * begin with `!`. Empty: any GPU.
   */
  readonly gpuTypes: readonly string[];
  /** Allowed GPU UUIDs, and with `!` forbidden ones. Empty: any GPU. */
  readonly gpuUuids: readonly string[];
  /** Which GPU to prefer. Undefined: as the scheduler does. */
  readonly placement: Strategy | undefined;
}

/** An invalid GPU request. The message has one sentence per problem. */
export class PodRequestError extends Error {
  override readonly name = 'PodRequestError';

  constructor(readonly problems: readonly string[]) {
    super(problems.join(' '));
  }
}

/**
 * Parser of an annotation's values. `read` returns undefined for invalid ones; `allowed` describes
 * valid ones.
 */
interface Kind<T> {
  readonly allowed: string;
  read(text: string): T | undefined;
}

/** Maximum length of an annotation's value. */
export const MAXIMUM_LENGTH = 4096;
/** The tenant policy allows no others, because CEL's trim() removes other spaces than ours. */
const UNPRINTABLE = /[^ -~]/u;
/** Maximum number of GPUs or GPU types in one annotation. */
const MAXIMUM_LISTED = 64;
/** Maximum number of containers with slots. It bounds the scheduler's search for GPUs. */
const MAXIMUM_CONTAINERS = 64;
/** Limits per annotation: reported problems, and quoted characters of an invalid value. */
const MAXIMUM_PROBLEMS = 4;
const MAXIMUM_QUOTED = 100;

const MEMORY: Kind<number> = { allowed: QUANTITIES, read: readQuantity };
const PERCENT: Kind<number> = {
  allowed: 'a whole percentage from 1 to 100, for example 25',
  read: (text) => readWhole(text, 100),
};
const COUNT: Kind<number> = {
  allowed: 'a whole number from 1 to 64',
  read: (text) => readWhole(text, 64),
};
const POLICY = oneOf<Policy>('burst', 'fixed');
const PRIORITY: Kind<number> = {
  allowed: 'a whole number from -100 to 100',
  read: readPriority,
};
const MODE = oneOf<SharingMode>('exclusive', 'concurrent');
const LATENCY = oneOf<Latency>('low');
const TRACE = oneOf<TraceMode>('summary');
const PLACEMENT = oneOf<Strategy>('binpack', 'spread');

/**
 * Reads slots and annotations of a pod. A value applies to every container that requests slots, or
 * `CONTAINER=VALUE` to one. Commas separate several: `8Gi,trainer=16Gi`.
 * @param slotSize gives slots to containers that have none and ask for memory. Undefined: such
 * containers request nothing.
 * @returns undefined if no container requests slots
 * @throws PodRequestError with all problems. It does not check whether the request fits any node.
 */
export function readPodRequest(pod: V1Pod, slotSize?: SlotSize): PodRequest | undefined {
  const problems: string[] = [];
  const all = containersOf(pod);
  const byMemory = slotSize ? askingByMemory(pod, all) : [];
  if (byMemory === undefined)
    problems.push(
      `${ANNOTATION.memory} names none of the pod's ${all.length} containers: ` +
        `write CONTAINER=SIZE, or request ${RESOURCE} in one of them.`,
    );
  const asking = all.filter(({ container, slots }) => slots !== 0 || byMemory?.includes(container));
  if (asking.length === 0 && problems.length === 0) return undefined;
  if (asking.length > MAXIMUM_CONTAINERS)
    throw new PodRequestError([
      `${asking.length} containers of the pod request ${RESOURCE}; ` +
        `the limit is ${MAXIMUM_CONTAINERS}. Spread them over several pods.`,
    ]);
  const names = asking.map(({ container }) => container);
  const values = <T>(annotation: string, kind: Kind<T>) =>
    readValues(pod, annotation, kind, names, problems);
  const [memory, cores, gpus] = [
    values(ANNOTATION.memory, MEMORY),
    values(ANNOTATION.cores, PERCENT),
    values(ANNOTATION.gpus, COUNT),
  ];
  const [policy, mode] = [values(ANNOTATION.policy, POLICY), values(ANNOTATION.mode, MODE)];
  const priority = values(ANNOTATION.priority, PRIORITY);
  const latency = values(ANNOTATION.latency, LATENCY);
  const trace = values(ANNOTATION.trace, TRACE);
  const containers = asking.map(({ container, init, slots: requested }) => {
    const shape = {
      memory: memory(container),
      cores: cores(container),
      policy: policy(container),
      priority: priority(container),
      mode: mode(container),
      latency: latency(container),
      trace: trace(container),
    };
    const many = gpus(container) ?? 1;
    const slots = requested === 0 && slotSize ? slotsFor(shape, many, slotSize) : requested;
    const request = { container, init, slots, gpus: many, ...shape };
    problems.push(...contradictions(request));
    return request;
  });
  const request = {
    containers,
    gpuTypes: list(pod, ANNOTATION.gpuType, problems),
    gpuUuids: list(pod, ANNOTATION.gpuUuid, problems),
    placement: readOne(pod, ANNOTATION.placement, PLACEMENT, problems),
  };
  const most = Math.max(...containers.map((container) => container.gpus));
  const named = request.gpuUuids.filter((uuid) => !isExcluded(uuid)).length;
  if (named > 0 && named < most)
    problems.push(
      `${ANNOTATION.gpuUuid} names ${named} of the ${most} GPUs that ` +
        `${ANNOTATION.gpus} requests: name them all.`,
    );
  if (problems.length > 0) throw new PodRequestError(problems);
  return request;
}

/** Whether an entry of gpuTypes or gpuUuids forbids what it names. */
export function isExcluded(entry: string): boolean {
  return entry.startsWith('!');
}

/**
 * The slots of all containers in start order: init containers and sidecars, then the others.
 * Includes containers without slots.
 */
export function containersOf({
  spec,
}: V1Pod): { container: string; init: boolean; slots: number }[] {
  const init = (spec?.initContainers ?? []).map((container) => ({
    ...slotsOf(container),
    init: container.restartPolicy !== 'Always',
  }));
  return [
    ...init,
    ...(spec?.containers ?? []).map((container) => ({ ...slotsOf(container), init: false })),
  ];
}

/**
 * Maximum number of slots held at one time by containers in start order. An init container ends
 * and releases its slots before the next container starts; sidecars keep theirs. Kubernetes counts
 * a node's resources in this way, and nvidia-virtual the slots of each GPU.
 */
export function peak(
  containers: readonly { readonly init: boolean; readonly slots: number }[],
): number {
  let lasting = 0;
  let most = 0;
  for (const { init, slots } of containers) {
    if (init) most = Math.max(most, lasting + slots);
    else lasting += slots;
  }
  return Math.max(most, lasting);
}

/** Parses a quantity of slots. Kubernetes writes a thousand as `1k`. */
export function readSlots(quantity: string | undefined): number {
  return readQuantity(quantity ?? '') ?? 0;
}

function slotsOf({ name, resources }: V1Container): { container: string; slots: number } {
  return {
    container: name,
    slots: readSlots(resources?.limits?.[RESOURCE] ?? resources?.requests?.[RESOURCE]),
  };
}

function contradictions(request: ContainerRequest): string[] {
  const { container, slots, gpus, mode, latency, priority = 0 } = request;
  const problems: string[] = [];
  if (slots % gpus !== 0)
    problems.push(
      `Container ${container} requests ${slots} ${RESOURCE} over ${gpus} GPUs ` +
        `(${ANNOTATION.gpus}), but they must spread evenly: request a multiple of ${gpus}.`,
    );
  if (gpus > 1 && mode === 'concurrent')
    problems.push(
      `Container ${container} requests ${gpus} GPUs (${ANNOTATION.gpus}) in mode concurrent, ` +
        `but each GPU has its own MPS server: request one GPU, or remove ${ANNOTATION.mode}.`,
    );
  if (latency === 'low' && mode === 'concurrent')
    problems.push(
      `Container ${container} requests a low latency (${ANNOTATION.latency}) in mode concurrent, ` +
        `which has no turns: remove ${ANNOTATION.latency} or ${ANNOTATION.mode}.`,
    );
  if (priority !== 0 && mode === 'concurrent')
    problems.push(
      `Container ${container} requests a priority (${ANNOTATION.priority}) in mode concurrent, ` +
        `which has no turns: remove ${ANNOTATION.priority} or ${ANNOTATION.mode}.`,
    );
  return problems;
}

/** Takes linear time: each part is split at its first `=`, without a regular expression. */
function readValues<T>(
  pod: V1Pod,
  annotation: string,
  kind: Kind<T>,
  containers: readonly string[],
  problems: string[],
) {
  const text = annotationOf(pod, annotation, problems);
  const known = new Set(containers);
  const wrong: string[] = [];
  const some = new Map<string, T>();
  let all: T | undefined;
  for (const part of text === undefined ? [] : text.split(',')) {
    if (wrong.length >= MAXIMUM_PROBLEMS) break;
    const { container, written } = readPart(part);
    const value = kind.read(written);
    if (value === undefined)
      wrong.push(
        `${annotation} is ${quoted(text)}, but ${quoted(written)} must be ${kind.allowed}.`,
      );
    else if (container === undefined) all = value;
    else if (known.has(container)) some.set(container, value);
    else
      wrong.push(
        `${annotation} names container ${shortened(container)}, which requests no ${RESOURCE}. ` +
          `Containers that do: ${shortened(containers.join(', '))}.`,
      );
  }
  problems.push(...wrong);
  return (container: string) => some.get(container) ?? all;
}

/** `VALUE`, or `CONTAINER=VALUE`. */
function readPart(part: string): { container: string | undefined; written: string } {
  const equals = part.indexOf('=');
  const container = equals < 0 ? '' : part.slice(0, equals).trim();
  return container === ''
    ? { container: undefined, written: part.trim() }
    : { container, written: part.slice(equals + 1).trim() };
}

/** A value for the whole pod. */
function readOne<T>(
  pod: V1Pod,
  annotation: string,
  kind: Kind<T>,
  problems: string[],
): T | undefined {
  const text = annotationOf(pod, annotation, problems);
  const value = text === undefined ? undefined : kind.read(text);
  if (text !== undefined && value === undefined)
    problems.push(`${annotation} is ${quoted(text)}, but must be ${kind.allowed}.`);
  return value;
}

function list(pod: V1Pod, annotation: string, problems: string[]): string[] {
  const listed = (annotationOf(pod, annotation, problems) ?? '')
    .split(',')
    .flatMap((part) => part.trim() || []);
  if (listed.length > MAXIMUM_LISTED)
    problems.push(`${annotation} lists ${listed.length} names; the limit is ${MAXIMUM_LISTED}.`);
  return listed;
}

/** The value of an annotation. Undefined, with a problem, if too long or not printable ASCII. */
function annotationOf(
  { metadata }: V1Pod,
  annotation: string,
  problems: string[],
): string | undefined {
  const text = metadata?.annotations?.[annotation];
  if (text === undefined) return undefined;
  const unprintable = text.match(UNPRINTABLE)?.[0].codePointAt(0);
  if (text.length > MAXIMUM_LENGTH)
    problems.push(`${annotation} has ${text.length} characters; the limit is ${MAXIMUM_LENGTH}.`);
  else if (unprintable !== undefined)
    problems.push(
      `${annotation} contains U+${unprintable.toString(16).toUpperCase().padStart(4, '0')}, ` +
        'which is not a printable ASCII character: remove it.',
    );
  else return text;
  return undefined;
}

function quoted(text: string | undefined): string {
  return `"${shortened(text ?? '')}"`;
}

function shortened(text: string): string {
  return text.length > MAXIMUM_QUOTED ? `${text.slice(0, MAXIMUM_QUOTED)}…` : text;
}

function readWhole(text: string, most: number): number | undefined {
  const value = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  return value >= 1 && value <= most ? value : undefined;
}

function readPriority(text: string): number | undefined {
  const value = /^-?\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  return value >= -100 && value <= 100 ? value + 0 : undefined;
}

function oneOf<T extends string>(...allowed: T[]): Kind<T> {
  return { allowed: allowed.join(' or '), read: (text) => allowed.find((value) => value === text) };
}
