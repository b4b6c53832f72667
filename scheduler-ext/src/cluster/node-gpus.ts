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
  /** For comparisons in any case. */
  readonly lowerUuid: string;
  readonly model: Model;
  readonly healthy: boolean;
  /** Slots that are held here, or may be. */
  used: number;
  /** Those of `used` that pods without a known GPU may hold. */
  unknown: number;
}

const NO_GPUS: readonly Gpu[] = [];
const FEW_NODES = 256;
const STALE = -1;

/**
 * The states of nodes by their index. Equal for nodes that are alike in everything but names: what one is to a pod, the other is too; not used for
 * another state until there were 2^31. Below 0 when it is to be asked for by currentState(). They lie side by side, since a scheduler looks at
 * those of thousands of nodes for each pod.
 */
export class NodeStates {
  #all = new Int32Array(FEW_NODES).fill(STALE);

  /** Until a node with a higher index comes. */
  get all(): Int32Array {
    return this.#all;
  }

  put(index: number, state: number): void {
    if (index >= this.#all.length) {
      const more = new Int32Array(2 * index).fill(STALE);
      more.set(this.#all);
      this.#all = more;
    }
    this.#all[index] = state;
  }
}

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
  #states: NodeStates;
  #inventory: string | undefined;

  /** Its name as JSON has it. */
  readonly quotedName: string;

  /** @param index of its own, small: what is known of nodes stands in arrays */
  constructor(
    readonly name: string,
    readonly index = 0,
    states = new NodeStates(),
  ) {
    this.quotedName = JSON.stringify(name);
    this.#states = states;
    this.#changed();
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
    this.gpus = (listed ?? []).map(gpuFrom);
    this.signature = this.gpus.map(({ model, healthy }) => `${model.id}${healthy ? '' : '!'}`).join(' ');
    this.#changed();
    for (const holder of this.holders.values()) this.#count(holder, 1);
    return true;
  }

  /** Below 0 for a node that is not the same to everybody, because somebody was promised slots there. */
  currentState(): number {
    const known = this.#states.all[this.index] as number;
    if (known !== STALE || this.promised.size > 0) return known;
    const use = this.gpus.map(({ used, unknown }) => (unknown > 0 ? `${used}?${unknown}` : used)).join(' ');
    const state = stateOf(`${this.broken}|${this.signature}|${use}`);
    this.#states.put(this.index, state);
    return state;
  }

  promise(holder: Holder): void {
    this.promised.set(holder.uid, holder);
    this.#changed();
  }

  /** @returns whether there was a promise. */
  unpromise(uid: string): boolean {
    if (!this.promised.delete(uid)) return false;
    this.#changed();
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

  /** The cluster has it no more, and its index may be another one's: what somebody still holds of it keeps its own state. */
  leave(): void {
    this.#states = new NodeStates();
    this.#changed();
  }

  #changed(): void {
    this.#states.put(this.index, STALE);
  }

  #count({ holding, demand }: Holder, sign: 1 | -1): void {
    this.#changed();
    for (const gpu of this.gpus) {
      // Whoever may be served by any of several GPUs counts on each of them: no slot is promised twice.
      const slots = holding === undefined ? (demand?.most(gpu) ?? gpu.model.slots) : (holding.get(gpu.uuid) ?? 0);
      gpu.used += sign * slots;
      if (holding === undefined) gpu.unknown += sign * slots;
    }
  }
}

function gpuFrom(listed: InventoryGpu): Gpu {
  const { uuid, healthy } = listed;
  return { uuid, lowerUuid: uuid.toLowerCase(), model: modelOf(listed), healthy, used: 0, unknown: 0 };
}

const states = new Map<string, number>();
const MOST_STATES = 50_000;
const MOST_STATE = 0x7fffffff;
let nextState = 0;

function stateOf(description: string): number {
  const known = states.get(description);
  if (known !== undefined) return known;
  // Nodes that are alike are then not seen to be so for a while, which costs time only.
  if (states.size === MOST_STATES) states.clear();
  states.set(description, nextState);
  const state = nextState;
  nextState = (nextState + 1) & MOST_STATE;
  return state;
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
