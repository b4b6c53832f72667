import { type Inventory, readInventory } from '@nvidia-virtual/kube-common/assignment';
import { drainedGpus } from '@nvidia-virtual/kube-common/drained';
import type { Holding } from '@nvidia-virtual/kube-common/holding';
import type { Demand } from '../placement/demand.js';
import { type Gpu, gpuFrom } from './gpu.js';

/** A pod that holds slots of a node, or has reserved them. */
interface Holder {
  readonly uid: string;
  readonly priority: number;
  /** Undefined for a pod that another scheduler placed. */
  readonly holding: Holding | undefined;
  /** Its request; undefined if malformed. */
  readonly demand: Demand | undefined;
}

const NO_GPUS: readonly Gpu[] = [];

/** The GPUs of one node and the holders of their slots. */
export class NodeGpus {
  gpus: readonly Gpu[] = NO_GPUS;
  /** True if the inventory is malformed. */
  broken = false;
  /** Whether one of its GPUs is drained. */
  drains = false;
  /** Whether pods can move between its GPUs. */
  movable = false;
  /** The move by which a pod's programs have left its former GPU, keyed by its UID. */
  arrivals: ReadonlyMap<string, number> = new Map();
  /** What the node gave to pods of other schedulers, keyed by the pod's UID. */
  #placed: ReadonlyMap<string, Holding> = new Map();
  /** Equal for nodes with the same models and states of GPUs. */
  signature = '';
  readonly holders = new Map<string, Holder>();
  /** Preemptors that get slots here when their victims are gone. */
  readonly promised = new Map<string, Holder>();
  #inventory: string | undefined;
  #drained: string | undefined;
  #state: string | undefined;

  constructor(readonly name: string) {}

  /**
   * @param text the annotation of the node
   * @param drained that of its drained GPUs
   * @returns whether one of them changed
   */
  setInventory(text: string | undefined, drained?: string): boolean {
    // Nodes are updated often, but their GPUs rarely change.
    if (text === this.#inventory && drained === this.#drained) return false;
    this.#inventory = text;
    this.#drained = drained;
    const listed = readListed(text);
    const drainedUuids = drainedGpus(drained);
    this.broken = listed === undefined;
    this.gpus = (listed?.gpus ?? []).map((gpu) => gpuFrom(gpu, drainedUuids));
    this.drains = this.gpus.some((gpu) => gpu.drained);
    this.movable = listed?.movable === true;
    this.arrivals = new Map((listed?.arrivals ?? []).map(({ pod, move }) => [pod, move]));
    this.#placed = new Map(
      (listed?.placed ?? []).map(({ pod, gpus }) => [
        pod,
        new Map(gpus.map(({ gpu, slots }) => [gpu, slots])),
      ]),
    );
    this.signature = this.gpus
      .map(({ model, healthy, drained: leaves }) => {
        return `${model.id}${healthy ? '' : '!'}${leaves ? '-' : ''}`;
      })
      .join(' ');
    this.#state = undefined;
    for (const holder of this.holders.values()) this.#count(holder, 1);
    return true;
  }

  /**
   * Cache key, equal for nodes that differ only in names and UUIDs. Undefined while slots are
   * promised here: the free slots then depend on the pod.
   */
  get state(): string | undefined {
    if (this.promised.size > 0) return undefined;
    this.#state ??= this.#describe();
    return this.#state;
  }

  promise(holder: Holder): void {
    this.promised.set(holder.uid, holder);
  }

  /** @returns whether there was a promise */
  unpromise(uid: string): boolean {
    return this.promised.delete(uid);
  }

  hold(holder: Holder): void {
    this.release(holder.uid);
    this.holders.set(holder.uid, holder);
    this.#count(holder, 1);
  }

  release(uid: string): void {
    const holder = this.holders.get(uid);
    if (holder === undefined) return;
    this.holders.delete(uid);
    this.#count(holder, -1);
  }

  /** True if it has neither inventory nor holders. */
  get idle(): boolean {
    return this.#inventory === undefined && this.holders.size === 0;
  }

  /** From its assignment, else from the node's inventory. Undefined: its GPUs are unknown. */
  holdingOf({ uid, holding }: Pick<Holder, 'uid' | 'holding'>): Holding | undefined {
    return holding ?? this.#placed.get(uid);
  }

  /**
   * The slots of a GPU that count as held. Slots of a pod whose GPUs are unknown count on each GPU,
   * whatever it asks for: no slot is assigned twice.
   */
  slotsHeld(holder: Omit<Holder, 'priority'>, { uuid, model }: Gpu): number {
    const holding = this.holdingOf(holder);
    const slots =
      holding === undefined ? (holder.demand?.most ?? model.slots) : (holding.get(uuid) ?? 0);
    // Sums of what a tenant may write would exceed 2^53, and lose the slots of others.
    return Math.min(slots, model.slots);
  }

  #describe(): string {
    const use = this.gpus.map(({ used, unknown }) => `${used}?${unknown}`).join(' ');
    return `${this.broken}|${this.signature}|${use}`;
  }

  #count(holder: Holder, sign: 1 | -1): void {
    this.#state = undefined;
    const isUnknown = this.holdingOf(holder) === undefined;
    for (const gpu of this.gpus) {
      const slots = this.slotsHeld(holder, gpu);
      gpu.used += sign * slots;
      if (isUnknown) gpu.unknown += sign * slots;
    }
  }
}

/** Undefined if the inventory is malformed. */
function readListed(text: string | undefined): Inventory | undefined {
  if (text === undefined) return { version: 1, gpus: [] };
  try {
    return readInventory(text);
  } catch {
    return undefined;
  }
}
