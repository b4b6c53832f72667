import type { Holding } from '@nvidia-virtual/kube-common/holding';
import { peak, type Strategy } from '@nvidia-virtual/kube-common/pod-request';
import type { Gpu } from '../cluster/gpu.js';
import type { NodeGpus } from '../cluster/node-gpus.js';
import type { Demand, Need } from './demand.js';

/** GPUs of each container, by its index in the demand. */
export type Placement = readonly (readonly Gpu[])[];

/** The pod to place. */
export interface PodIdentity {
  readonly uid: string;
  readonly priority: number;
}

/** Free slots of each GPU, by its index on the node. */
export type Free = readonly number[];

/** Limit on steps of the search. Real pods need fewer. */
const MOST_STEPS = 5000;

/**
 * Slots that are free for this pod: not in use, and not promised to a pod with precedence.
 */
export function freeFor({ uid, priority }: PodIdentity, { gpus, promised }: NodeGpus): number[] {
  const free = gpus.map(({ model, used }) => model.slots - used);
  for (const other of promised.values()) {
    if (other.uid === uid || other.priority < priority) continue;
    for (const [index, gpu] of gpus.entries())
      (free[index] as number) -= other.holding?.get(gpu.uuid) ?? 0;
  }
  return free;
}

/**
 * Places the containers so that each piece lies on one GPU; undefined if they do not fit.
 */
export function place(
  demand: Demand,
  gpus: readonly Gpu[],
  free: Free,
  strategy: Strategy,
): Placement | undefined {
  return new Search(demand, gpus, free, demand.strategy(strategy)).run();
}

/** The peak of slots that the pod holds of each GPU. */
export function holdingOf(demand: Demand, placement: Placement): Holding {
  const slotsOn = (gpu: Gpu) =>
    demand.needs.map(({ init }, index) => ({
      init,
      slots: placement[index]?.includes(gpu) ? demand.takes(index, gpu.model) : 0,
    }));
  return new Map([...new Set(placement.flat())].map((gpu) => [gpu.uuid, peak(slotsOn(gpu))]));
}

class Search {
  readonly #order: readonly number[];
  readonly #free: number[];
  /** Places on the node, by container. */
  readonly #chosen: number[][];
  #steps = 0;

  constructor(
    readonly demand: Demand,
    readonly gpus: readonly Gpu[],
    readonly free: Free,
    strategy: Strategy,
  ) {
    this.#order = orderOf(free, strategy);
    this.#free = [...free];
    this.#chosen = demand.needs.map(() => []);
  }

  run(): Placement | undefined {
    return this.#placeLasting(0)
      ? this.#chosen.map((places) => places.map((place) => this.gpus[place] as Gpu))
      : undefined;
  }

  /** Backtracking search, largest pieces first. */
  #placeLasting(next: number): boolean {
    const piece = this.demand.pieces[next];
    if (piece === undefined) return this.#placeInit();
    const { index } = piece;
    const chosen = this.#chosen[index] as number[];
    for (const place of this.#order) {
      const slots = this.#takes(index, place);
      if (
        (this.#free[place] as number) < slots ||
        chosen.includes(place) ||
        !this.demand.suits(index, this.gpus[place] as Gpu)
      )
        continue;
      if (++this.#steps > MOST_STEPS) return false;
      (this.#free[place] as number) -= slots;
      chosen.push(place);
      if (this.#placeLasting(next + 1)) return true;
      chosen.pop();
      (this.#free[place] as number) += slots;
    }
    return false;
  }

  /**
   * Each runs alone beside the sidecars before it, first of all on slots that the pod holds later
   * anyway.
   */
  #placeInit(): boolean {
    return this.demand.needs.every((need, index) => {
      if (!need.init) return true;
      const room = this.gpus.map(
        (_, place) => (this.free[place] as number) - this.#sidecarsBefore(index, place),
      );
      const held = (place: number) => (this.free[place] as number) - (this.#free[place] as number);
      const fitting = this.#order.filter(
        (place) =>
          (room[place] as number) >= this.#takes(index, place) &&
          this.demand.suits(index, this.gpus[place] as Gpu),
      );
      this.#chosen[index] = fitting.sort((a, b) => held(b) - held(a)).slice(0, need.gpus);
      return fitting.length >= need.gpus;
    });
  }

  #takes(index: number, place: number): number {
    return this.demand.takes(index, (this.gpus[place] as Gpu).model);
  }

  #sidecarsBefore(index: number, place: number): number {
    let slots = 0;
    for (let before = 0; before < index; before++) {
      const need = this.demand.needs[before] as Need;
      if (!need.init && this.#chosen[before]?.includes(place)) slots += this.#takes(before, place);
    }
    return slots;
  }
}

/**
 * Places on the node as they are tried. Few, and by the thousand, so they are inserted where they
 * belong.
 */
function orderOf(free: Free, strategy: Strategy): number[] {
  const order: number[] = [];
  for (let place = 0; place < free.length; place++) {
    let at = order.length;
    while (
      at > 0 &&
      isBefore(free[place] as number, free[order[at - 1] as number] as number, strategy)
    ) {
      order[at] = order[at - 1] as number;
      at--;
    }
    order[at] = place;
  }
  return order;
}

function isBefore(one: number, other: number, strategy: Strategy): boolean {
  return strategy === 'binpack' ? one < other : one > other;
}
