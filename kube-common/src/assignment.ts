import type { SharingMode } from '@nvidia-virtual/ledger';
import { ANNOTATION } from './names.js';

/** Slots of one container on one GPU. */
export interface AssignedGpu {
  readonly gpu: string;
  /** Slots that the kubelet gives for this GPU. */
  readonly slots: number;
  /** Slots that it takes of the GPU, if its part of the time is larger than `slots`. */
  readonly taken?: number;
}

/**
 * Value of the annotation `nvidia-virtual/assigned` as JSON: the GPUs of each container. The
 * nvidia-virtual scheduler sets it when it binds the pod.
 */
export interface Assignment {
  readonly version: 1;
  readonly containers: Readonly<Record<string, readonly AssignedGpu[]>>;
  /** While the pod moves: its former GPU, of which it holds as many slots as of its GPU. */
  readonly former?: string;
  /** The number of its latest move. Undefined: it was never moved. */
  readonly move?: number;
}

/** The part of a pod from which its assignment is read. */
interface Annotated {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
}

/** A pod whose programs are on the GPU that it was assigned by this move. */
export interface Arrival {
  /** UID. */
  readonly pod: string;
  readonly move: number;
}

/** A pod without an assignment, and the slots that its node gave to it. */
export interface PlacedPod {
  /** UID. */
  readonly pod: string;
  readonly gpus: readonly AssignedGpu[];
}

/** The properties of a GPU that the scheduler needs. */
export interface InventoryGpu {
  readonly uuid: string;
  readonly name: string;
  /** Total memory in bytes. */
  readonly memory: number;
  /** Memory of one slot in bytes. */
  readonly slotMemory: number;
  readonly slots: number;
  /**
   * Slots that one container can have of it, if it is oversubscribed. A container with several GPUs
   * cannot use it then. Undefined: it is not.
   */
  readonly mostSlots?: number;
  readonly mode: SharingMode;
  readonly healthy: boolean;
}

/**
 * Value of the node annotation `nvidia-virtual/inventory` as JSON, written by the device plugin.
 */
export interface Inventory {
  readonly version: 1;
  readonly gpus: readonly InventoryGpu[];
  /** Whether pods can move between its GPUs. Undefined: no. */
  readonly movable?: boolean;
  /** Pods that still hold slots of their former GPU, and no longer need them. */
  readonly arrivals?: readonly Arrival[];
  /** Any other pod without an assignment may have slots of each GPU. */
  readonly placed?: readonly PlacedPod[];
}

/**
 * @returns undefined if missing or not an assignment of this version. @throws SyntaxError if not
 * JSON
 */
export function readAssignment(text: string | undefined): Assignment | undefined {
  const { version, containers, former, move } = readObject(text);
  if (version !== 1 || !isObject(containers)) return undefined;
  if (former !== undefined && typeof former !== 'string') return undefined;
  if (move !== undefined && !isCount(move)) return undefined;
  const lists = Object.values(containers);
  if (!lists.every((list) => Array.isArray(list) && list.every(isAssignedGpu))) return undefined;
  return {
    ...{ version, containers: plain(containers as Assignment['containers']) },
    ...(former !== undefined && { former }),
    ...(move !== undefined && { move: move as number }),
  };
}

/** Any user can write annotations of pods of other schedulers. An invalid one counts as missing. */
export function assignmentOf({ metadata }: Annotated): Assignment | undefined {
  try {
    return readAssignment(metadata?.annotations?.[ANNOTATION.assigned]);
  } catch {
    return undefined;
  }
}

/** The only GPU of all containers. Undefined: they have several. */
export function onlyGpu({ containers }: Assignment): string | undefined {
  const [gpu, ...others] = new Set(Object.values(containers).flatMap(gpusOf));
  return others.length === 0 && Object.values(containers).every(({ length }) => length === 1)
    ? gpu
    : undefined;
}

/** Slots of a container: on its GPUs and, while the pod moves, on its former GPU. */
export function heldBy({ containers, former }: Assignment, container: string): AssignedGpu[] {
  const held = containers[container] ?? [];
  if (former === undefined) return [...held];
  return [...held, ...held.map((assigned) => ({ ...assigned, gpu: former }))];
}

function gpusOf(assigned: readonly AssignedGpu[]): string[] {
  return assigned.map(({ gpu }) => gpu);
}

/**
 * @returns undefined if missing or not an inventory of this version. @throws SyntaxError if not
 * JSON
 */
export function readInventory(text: string | undefined): Inventory | undefined {
  const { version, gpus, movable, arrivals, placed } = readObject(text);
  if (version !== 1 || !Array.isArray(gpus) || !gpus.every(isInventoryGpu)) return undefined;
  const arrived = valid(arrivals, isArrival);
  const known = valid(placed, isPlacedPod);
  return {
    ...{ version, gpus },
    ...(movable === true && { movable }),
    ...(arrived.length > 0 && { arrivals: arrived }),
    ...(known.length > 0 && { placed: known }),
  };
}

/** Leaves out what this version cannot read. */
function valid<T>(list: unknown, isValid: (value: unknown) => value is T): T[] {
  return Array.isArray(list) ? list.filter(isValid) : [];
}

/** Returns a record without a prototype: a container can be named `constructor`. */
function plain<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.assign(Object.create(null) as Record<string, T>, record);
}

function readObject(text: string | undefined): Record<string, unknown> {
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  return isObject(value) ? value : {};
}

function isAssignedGpu(value: unknown): value is AssignedGpu {
  if (!isObject(value)) return false;
  const { gpu, slots, taken } = value;
  return typeof gpu === 'string' && isCount(slots) && (taken === undefined || isCount(taken));
}

function isArrival(value: unknown): value is Arrival {
  return isObject(value) && typeof value['pod'] === 'string' && isCount(value['move']);
}

function isPlacedPod(value: unknown): value is PlacedPod {
  if (!isObject(value)) return false;
  const { pod, gpus } = value;
  const areKnown = Array.isArray(gpus) && gpus.length > 0 && gpus.every(isAssignedGpu);
  return typeof pod === 'string' && areKnown;
}

function isInventoryGpu(value: unknown): value is InventoryGpu {
  if (!isObject(value)) return false;
  const { uuid, name, memory, slotMemory, slots, mostSlots, mode, healthy } = value;
  const named = isName(uuid) && isName(name) && typeof healthy === 'boolean';
  return (
    named &&
    isAmount(memory) &&
    isAmount(slotMemory) &&
    isCount(slots) &&
    (mostSlots === undefined || isCount(mostSlots)) &&
    (mode === 'exclusive' || mode === 'concurrent')
  );
}

/** Names of GPUs are shown in terminals, and repeated for each pod that waits. */
function isName(value: unknown): boolean {
  return typeof value === 'string' && /^[ -~]{0,200}$/.test(value);
}

function isObject<T>(value: unknown): value is Record<string, T> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isAmount(value: unknown): boolean {
  return Number.isFinite(value) && (value as number) >= 0;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
