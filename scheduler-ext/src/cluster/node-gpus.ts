import { type InventoryGpu, readInventory } from '@nvidia-virtual/kubernetes/assignment';
import type { Holding } from '@nvidia-virtual/kubernetes/holding';
import type { Demand } from '../placement/demand.js';
import { type Model, modelOf } from './model.js';

/** A pod that holds slots of a node, or is about to. */
export interface Holder {
  readonly uid: string;
  readonly priority: number;
  /** Undefined for a pod that another scheduler placed: which GPU serves it is not known. */
  readonly holding: Holding | undefined;
  /** What it asks for, where that is understood. */
  readonly demand: Demand | undefined;
}

export interface Gpu {
  readonly uuid: string;
  readonly model: Model;
  readonly healthy: boolean;
  /** Slots that are held here, or may be. */
  used: number;
  /** Those of `used` that pods without a known GPU may hold. */
  unknown: number;
}

const NO_GPUS: readonly Gpu[] = [];
const STALE = -1;

/** The GPUs of one node and who holds their slots. */
export class NodeGpus {
  gpus: readonly Gpu[] = NO_GPUS;
  /** True when the inventory is there and cannot be read. */
  broken = false;
  /** Equal for nodes whose GPUs are alike, in health too. */
  signature = '';
  readonly holders = new Map<string, Holder>();
  /** Pods that were promised slots here once others are gone. */
  readonly promised = new Map<string, Holder>();
  /**
   * Equal for nodes that are alike in everything but names: what one is to a pod, the other is too; never used again for another state. Below 0
   * when it is to be asked for by currentState(). A plain field, since a scheduler looks at that of thousands of nodes for each pod.
   */
  state = STALE;
  #inventory: string | undefined;

  /** Its name as JSON has it. */
  readonly quotedName: string;

  /** @param index of its own, small: what is known of nodes stands in arrays */
  constructor(
    readonly name: string,
    readonly index = 0,
  ) {
    this.quotedName = JSON.stringify(name);
  }

  /**
   * @param text the annotation of the node.
   * @returns whether it is another one.
   */
  setInventory(text: string | undefined): boolean {
    // Nodes report their state all the time, and their GPUs hardly ever change.
    if (text === this.#inventory) return false;
    this.#inventory = text;
    const listed = readGpus(text);
    this.broken = listed === undefined;
    this.gpus = (listed ?? []).map((gpu) => ({ uuid: gpu.uuid, model: modelOf(gpu), healthy: gpu.healthy, used: 0, unknown: 0 }));
    this.signature = this.gpus.map(({ model, healthy }) => `${model.id}${healthy ? '' : '!'}`).join(' ');
    this.state = STALE;
    for (const holder of this.holders.values()) this.#count(holder, 1);
    return true;
  }

  /** Below 0 for a node that is not the same to everybody, because somebody was promised slots there. */
  currentState(): number {
    if (this.state === STALE && this.promised.size === 0) {
      const use = this.gpus.map(({ used, unknown }) => (unknown > 0 ? `${used}?${unknown}` : used)).join(' ');
      this.state = stateOf(`${this.broken}|${this.signature}|${use}`);
    }
    return this.state;
  }

  promise(holder: Holder): void {
    this.promised.set(holder.uid, holder);
    this.state = STALE;
  }

  /** @returns whether there was a promise. */
  unpromise(uid: string): boolean {
    if (!this.promised.delete(uid)) return false;
    this.state = STALE;
    return true;
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

  /** Nothing is known of it but its name. */
  get idle(): boolean {
    return this.#inventory === undefined && this.holders.size === 0;
  }

  #count({ holding, demand }: Holder, sign: 1 | -1): void {
    this.state = STALE;
    for (const gpu of this.gpus) {
      // Whoever may be served by any of several GPUs counts on each of them: no slot is promised twice.
      const slots = holding === undefined ? (demand?.most(gpu) ?? gpu.model.slots) : (holding.get(gpu.uuid) ?? 0);
      gpu.used += sign * slots;
      if (holding === undefined) gpu.unknown += sign * slots;
    }
  }
}

const states = new Map<string, number>();
const MOST_STATES = 50_000;
let nextState = 0;

function stateOf(description: string): number {
  const known = states.get(description);
  if (known !== undefined) return known;
  // Nodes that are alike are then not seen to be so for a while, which costs time only.
  if (states.size === MOST_STATES) states.clear();
  states.set(description, nextState);
  return nextState++;
}

/** Undefined when there is something that is no inventory. */
function readGpus(text: string | undefined): readonly InventoryGpu[] | undefined {
  if (text === undefined) return [];
  try {
    return readInventory(text)?.gpus;
  } catch {
    return undefined;
  }
}
