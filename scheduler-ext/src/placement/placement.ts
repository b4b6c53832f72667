import type { Holding } from '@nvidia-virtual/kube-common/holding';
import { peak, type Strategy } from '@nvidia-virtual/kube-common/pod-request';
import type { Gpu } from '../cluster/gpu.js';
import type { NodeGpus } from '../cluster/node-gpus.js';
import type { Demand } from './demand.js';

/** GPUs of each container, by its index in the demand. */
export type Placement = readonly (readonly Gpu[])[];

/** The pod to place. */
export interface PodIdentity {
  readonly uid: string;
  readonly priority: number;
}

/** Free slots of each GPU, by its index on the node. */
export type Free = readonly number[];

/** Limit on the steps of one placement. Real pods need fewer. */
const MOST_STEPS = 5000;
/** Limit on the steps of all placements of a pod in one request: some 100 to 200 ms. */
const MOST_IN_ALL = 150_000;

/**
 * Steps that placements of one pod may still take, over all nodes. A step tries one GPU for one
 * piece or init container. Without steps left, place() tries the first choice of each piece only.
 */
export class Steps {
  left = MOST_IN_ALL;

  get areSpent(): boolean {
    return this.left <= 0;
  }
}

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
 * Places the containers so that each piece lies on one GPU; undefined if they do not fit, or if the
 * search takes too many steps.
 */
export function place(
  demand: Demand,
  gpus: readonly Gpu[],
  free: Free,
  strategy: Strategy,
  steps = new Steps(),
): Placement | undefined {
  return new Search(demand, gpus, free, demand.strategy(strategy), steps).run();
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
  /** Whether the GPU can serve the pod at all, by place. */
  readonly #open: readonly boolean[];
  #taken = 0;

  constructor(
    readonly demand: Demand,
    readonly gpus: readonly Gpu[],
    readonly free: Free,
    strategy: Strategy,
    readonly steps: Steps,
  ) {
    this.#order = orderOf(free, strategy);
    this.#free = [...free];
    this.#chosen = demand.needs.map(() => []);
    this.#open = gpus.map((gpu) => demand.isOpen(gpu));
    steps.left -= gpus.length;
  }

  run(): Placement | undefined {
    return this.#hasRoom() && this.#placeLasting(0)
      ? this.#chosen.map((places) => places.map((place) => this.gpus[place] as Gpu))
      : undefined;
  }

  /** Whether the free slots suffice in sum. */
  #hasRoom(): boolean {
    let room = 0;
    for (let place = 0; place < this.free.length; place++)
      if (this.#open[place]) room += Math.max(0, this.free[place] as number);
    return room >= this.demand.lastingSlots;
  }

  /** Backtracking search, largest pieces first. */
  #placeLasting(next: number): boolean {
    const piece = this.demand.pieces[next];
    if (piece === undefined) return this.#placeInit();
    const { index } = piece;
    const chosen = this.#chosen[index] as number[];
    // Pieces of a container are equal, so its GPUs are tried in one order only.
    const last = chosen.at(-1);
    const from = last === undefined ? 0 : this.#order.indexOf(last) + 1;
    for (let at = from; at < this.#order.length; at++) {
      const place = this.#order[at] as number;
      const slots = this.#takes(index, place);
      if ((this.#free[place] as number) < slots) continue;
      if (!this.#maySearch(1)) return false;
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
    const room = [...this.free];
    const held = (place: number) => (this.free[place] as number) - (this.#free[place] as number);
    const order = [...this.#order].sort((a, b) => held(b) - held(a));
    return this.demand.needs.every((need, index) => {
      const chosen = this.#chosen[index] as number[];
      if (!need.init) {
        for (const place of chosen) (room[place] as number) -= this.#takes(index, place);
        return true;
      }
      if (!this.#maySearch(this.gpus.length)) return false;
      const fitting = order.filter((place) => (room[place] as number) >= this.#takes(index, place));
      this.#chosen[index] = fitting.slice(0, need.gpus);
      return fitting.length >= need.gpus;
    });
  }

  /** Always true for the steps of a search that does not backtrack. */
  #maySearch(steps: number): boolean {
    this.#taken += steps;
    this.steps.left -= steps;
    if (this.#taken <= this.#first) return true;
    return this.#taken <= MOST_STEPS && !this.steps.areSpent;
  }

  get #first(): number {
    return this.demand.pieces.length + this.demand.inits * this.gpus.length;
  }

  /** Infinity if the GPU cannot serve the container. */
  #takes(index: number, place: number): number {
    return this.#open[place]
      ? this.demand.takes(index, (this.gpus[place] as Gpu).model)
      : Number.POSITIVE_INFINITY;
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
