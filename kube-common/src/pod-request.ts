import type { V1Container, V1Pod } from '@kubernetes/client-node';
import type { Policy, SharingMode } from '@nvidia-virtual/ledger';
import { ANNOTATION, RESOURCE } from './names.js';
import { QUANTITIES, readQuantity } from './quantity.js';

/**
 * What one container of a pod asks for. What is undefined is what its slots hold, or the node's
 * default.
 */
export interface ContainerRequest {
  readonly container: string;
  /**
   * It runs before the others and ends, and its slots serve a later container; a sidecar is none of
   * these.
   */
  readonly init: boolean;
  readonly slots: number;
  /** How many GPUs the slots are of, evenly. */
  readonly gpus: number;
  /** Bytes on each GPU. */
  readonly memory: number | undefined;
  /** Percent of each GPU's time. */
  readonly cores: number | undefined;
  readonly policy: Policy | undefined;
  readonly mode: SharingMode | undefined;
}

/** What a pod asks for. */
export interface PodRequest {
  readonly containers: readonly ContainerRequest[];
  /** Parts of GPU names, in any case; a GPU fits that has one of them in its name. Empty: any. */
  readonly gpuTypes: readonly string[];
  /** Empty: any. */
  readonly gpuUuids: readonly string[];
}

/** What a pod says that cannot be: a sentence each. */
export class PodRequestError extends Error {
  override readonly name = 'PodRequestError';

  constructor(readonly problems: readonly string[]) {
    super(problems.join(' '));
  }
}

/**
 * How a value of an annotation is read: undefined is what it may not be, `allowed` says what it
 * may.
 */
interface Kind<T> {
  readonly allowed: string;
  read(text: string): T | undefined;
}

/** Of the value of one annotation. */
export const MAXIMUM_LENGTH = 4096;
/** GPUs or types of GPUs that one annotation may list. */
const MOST_LISTED = 64;
/** Problems that are told of one annotation, and how much of a wrong value is repeated. */
const MOST_PROBLEMS = 4;
const MOST_SHOWN = 100;

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
const MODE = oneOf<SharingMode>('exclusive', 'concurrent');

/**
 * Reads slots and annotations of a pod. A value is for every container that asks for slots, or
 * `CONTAINER=VALUE` for one; commas separate several: `8Gi,trainer=16Gi`.
 * @returns undefined when no container asks for slots.
 * @throws PodRequestError with everything that is wrong; whether it fits anywhere is not asked.
 */
export function readPodRequest(pod: V1Pod): PodRequest | undefined {
  const asking = containersOf(pod).filter(({ slots }) => slots !== 0);
  if (asking.length === 0) return undefined;
  const problems: string[] = [];
  const names = asking.map(({ container }) => container);
  const values = <T>(annotation: string, kind: Kind<T>) =>
    readValues(pod, annotation, kind, names, problems);
  const [memory, cores, gpus] = [
    values(ANNOTATION.memory, MEMORY),
    values(ANNOTATION.cores, PERCENT),
    values(ANNOTATION.gpus, COUNT),
  ];
  const [policy, mode] = [values(ANNOTATION.policy, POLICY), values(ANNOTATION.mode, MODE)];
  const containers = asking.map(({ container, init, slots }) => {
    const shape = {
      memory: memory(container),
      cores: cores(container),
      policy: policy(container),
      mode: mode(container),
    };
    const request = { container, init, slots, gpus: gpus(container) ?? 1, ...shape };
    problems.push(...contradictions(request));
    return request;
  });
  const request = {
    containers,
    gpuTypes: list(pod, ANNOTATION.gpuType, problems),
    gpuUuids: list(pod, ANNOTATION.gpuUuid, problems),
  };
  const most = Math.max(...containers.map((container) => container.gpus));
  if (request.gpuUuids.length > 0 && request.gpuUuids.length < most)
    problems.push(
      `${ANNOTATION.gpuUuid} names ${request.gpuUuids.length} of the ${most} GPUs that ${ANNOTATION.gpus} asks for: name them all.`,
    );
  if (problems.length > 0) throw new PodRequestError(problems);
  return request;
}

/**
 * The arbiter's priority (-100 to 100, higher first) of a pod's (-2^31 to 2^31, from its
 * PriorityClass). Classes are usually powers of ten apart, so the scale is a logarithm: 0 is 0,
 * 1000 is 34, 1000000 is 67.
 */
export function arbiterPriority(podPriority = 0): number {
  if (podPriority === 0) return 0;
  return (
    Math.sign(podPriority) * Math.min(100, 1 + Math.floor(11 * Math.log10(Math.abs(podPriority))))
  );
}

/**
 * The slots of each container, in the order in which they start: init containers and sidecars, then
 * the others. What asks for none is there too.
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
 * Slots that containers hold at a time, in the order in which they start: an init container has
 * ended before the next container starts, which takes over its slots; sidecars stay. Kubernetes
 * counts so on a node, and we on each GPU.
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

/** A quantity of slots; Kubernetes writes a thousand as `1k`. */
export function readSlots(quantity: string | undefined): number {
  return readQuantity(quantity ?? '') ?? 0;
}

function slotsOf({ name, resources }: V1Container): { container: string; slots: number } {
  return {
    container: name,
    slots: readSlots(resources?.limits?.[RESOURCE] ?? resources?.requests?.[RESOURCE]),
  };
}

function contradictions({ container, slots, gpus, mode }: ContainerRequest): string[] {
  const problems: string[] = [];
  if (slots % gpus !== 0)
    problems.push(
      `Container ${container} asks for ${slots} ${RESOURCE} over ${gpus} GPUs (${ANNOTATION.gpus}), which cannot be even: ask for a multiple of ${gpus}.`,
    );
  if (gpus > 1 && mode === 'concurrent')
    problems.push(
      `Container ${container} asks for ${gpus} GPUs (${ANNOTATION.gpus}) in mode concurrent, in which each GPU has an MPS of its own: ask for one GPU, or leave out ${ANNOTATION.mode}.`,
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
    if (wrong.length >= MOST_PROBLEMS) break;
    const { container, written } = readPart(part);
    const value = kind.read(written);
    if (value === undefined)
      wrong.push(
        `${annotation} is ${quoted(text)}, and ${quoted(written)} is not allowed in it: give ${kind.allowed}.`,
      );
    else if (container === undefined) all = value;
    else if (known.has(container)) some.set(container, value);
    else
      wrong.push(
        `${annotation} names container ${shortened(container)}, which asks for no ${RESOURCE}; those that do are ${shortened(containers.join(', '))}.`,
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

function list(pod: V1Pod, annotation: string, problems: string[]): string[] {
  const listed = (annotationOf(pod, annotation, problems) ?? '')
    .split(',')
    .flatMap((part) => part.trim() || []);
  if (listed.length > MOST_LISTED)
    problems.push(`${annotation} lists ${listed.length} names; the limit is ${MOST_LISTED}.`);
  return listed;
}

/** The value of an annotation; undefined also for one that is too long, which is a problem. */
function annotationOf(
  { metadata }: V1Pod,
  annotation: string,
  problems: string[],
): string | undefined {
  const text = metadata?.annotations?.[annotation];
  if (text === undefined || text.length <= MAXIMUM_LENGTH) return text;
  problems.push(`${annotation} has ${text.length} characters; the limit is ${MAXIMUM_LENGTH}.`);
  return undefined;
}

function quoted(text: string | undefined): string {
  return `"${shortened(text ?? '')}"`;
}

function shortened(text: string): string {
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
}

function readWhole(text: string, most: number): number | undefined {
  const value = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  return value >= 1 && value <= most ? value : undefined;
}

function oneOf<T extends string>(...allowed: T[]): Kind<T> {
  return { allowed: allowed.join(' or '), read: (text) => allowed.find((value) => value === text) };
}
