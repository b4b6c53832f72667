import type { Gpu, NodeGpus } from '../cluster/node-gpus.js';
import { NOBODY, type Table } from '../cluster/node-table.js';
import type { Demand, Need } from './demand.js';
import { type Free, freeFor, type Placement, type PodIdentity, place, type Strategy } from './placement.js';
import { type Reason, Reasons } from './reason.js';

/** What a node is to a pod: how well it fits, or why it does not. */
export type Verdict = { readonly score: number } | Reason;

/** kube-scheduler's scale. */
export const MOST_SCORE = 10;
const SCORED: readonly Verdict[] = Array.from({ length: MOST_SCORE + 1 }, (_, score) => ({ score }));
/** No state of a node, and none that is to be asked for. */
const NEVER = -2;
/** What fits into 16 bits: more different verdicts than that are not remembered. */
const MOST_PLACE = 0xffff;
/** How full the GPU gets counts for more than how full its node is: slots that belong together are scarce on a GPU. */
const OF_GPU = 0.7;

/** More states than nodes of one cluster are in at a time. */
const MOST_KNOWN = 20_000;

/** Judges nodes for pods that ask for the same; what is alike is worked out once. */
export class Judge {
  readonly #demand: Demand;
  readonly #strategy: Strategy;
  readonly #reasons: Reasons;
  /** By state of the node. */
  readonly #known = new Map<number, Verdict>();
  /** By index of the node: its state when it was judged last, and which of the verdicts it was then. */
  #states = new Int32Array();
  #places = new Uint16Array();
  readonly #verdicts: Verdict[] = [];
  readonly #placeOf = new Map<Verdict, number>();
  /** The common case, one container and one GPU, is judged without a search. */
  readonly #single: Need | undefined;

  constructor(demand: Demand, strategy: Strategy) {
    const { needs } = demand;
    this.#demand = demand;
    this.#strategy = strategy;
    this.#reasons = new Reasons(demand);
    this.#single = needs.length === 1 && needs[0]?.gpus === 1 ? needs[0] : undefined;
  }

  judge(node: NodeGpus | undefined, pod: PodIdentity): Verdict {
    if (node === undefined) return this.#reasons.withoutGpus(node);
    const state = this.#stateOf(node);
    // What is judged at a glance is not worth looking up.
    return this.#single || state < 0 ? this.#judge(node, freeFor(pod, node)) : this.#judgeState(state, node, pod);
  }

  /** The same for one of thousands, or for NOBODY: at those that are as they were nothing is looked at. */
  judgeAt(nodes: Table, index: number, pod: PodIdentity): Verdict {
    if (index !== NOBODY && this.#states[index] === nodes.states[index]) return this.#verdicts[this.#places[index] as number] as Verdict;
    const node = nodes.node(index);
    const verdict = this.judge(node, pod);
    if (node) this.#remember(nodes, node, verdict);
    return verdict;
  }

  #remember(nodes: Table, node: NodeGpus, verdict: Verdict): void {
    const state = this.#stateOf(node);
    const place = this.#placeOf.get(verdict) ?? this.#verdicts.length;
    if (state < 0 || place > MOST_PLACE) return;
    if (node.index >= this.#states.length) {
      const [states, places] = [this.#states, this.#places];
      this.#states = new Int32Array(nodes.states.length).fill(NEVER);
      this.#places = new Uint16Array(nodes.states.length);
      this.#states.set(states);
      this.#places.set(places);
    }
    this.#placeOf.set(verdict, place);
    this.#verdicts[place] = verdict;
    this.#states[node.index] = state;
    this.#places[node.index] = place;
  }

  /** Below 0 where nothing is to be concluded from it: a UUID is somewhere, and then nodes that look alike are not. */
  #stateOf(node: NodeGpus): number {
    return this.#demand.uuids.size > 0 ? NEVER : node.currentState();
  }

  #judgeState(state: number, node: NodeGpus, pod: PodIdentity): Verdict {
    const known = this.#known.get(state);
    if (known) return known;
    if (this.#known.size === MOST_KNOWN) this.#known.clear();
    const verdict = this.#judge(node, freeFor(pod, node));
    this.#known.set(state, verdict);
    return verdict;
  }

  #judge(node: NodeGpus, free: Free): Verdict {
    if (node.gpus.length === 0) return this.#reasons.withoutGpus(node);
    const left = this.#single ? this.#scan(this.#single, node, free) : this.#search(node, free);
    if (left >= 0) return SCORED[this.#score(left, node)] as Verdict;
    return this.#reasons.forbidding(node) ?? this.#reasons.full(node, free);
  }

  /** Part of the chosen GPU that stays free; below 0 when none fits. */
  #scan(need: Need, { gpus }: NodeGpus, free: Free): number {
    let best = -1;
    for (let index = 0; index < gpus.length; index++) {
      const gpu = gpus[index] as Gpu;
      const left = (free[index] as number) - need.slots;
      if (left < 0 || !this.#demand.suits(0, gpu)) continue;
      const part = left / gpu.model.slots;
      if (best < 0 || (this.#strategy === 'binpack' ? part < best : part > best)) best = part;
    }
    return best;
  }

  #search({ gpus }: NodeGpus, free: Free): number {
    const placement = place(this.#demand, gpus, free, this.#strategy);
    return placement === undefined ? -1 : partLeft(this.#demand.needs, placement, gpus, free);
  }

  #score(left: number, { gpus }: NodeGpus): number {
    let [used, slots] = [0, 0];
    for (const gpu of gpus) {
      used += Math.min(gpu.used, gpu.model.slots);
      slots += gpu.model.slots;
    }
    const packed = OF_GPU * (1 - left) + ((1 - OF_GPU) * used) / slots;
    return Math.round(MOST_SCORE * (this.#strategy === 'binpack' ? packed : 1 - packed));
  }
}

/** On average over the GPUs of the pod. */
function partLeft(needs: readonly Need[], placement: Placement, gpus: readonly Gpu[], free: Free): number {
  const taken = new Map<Gpu, number>();
  for (const [index, need] of needs.entries()) {
    for (const gpu of placement[index] ?? [])
      taken.set(gpu, need.init ? Math.max(taken.get(gpu) ?? 0, need.slots) : (taken.get(gpu) ?? 0) + need.slots);
  }
  const parts = [...taken].map(([gpu, slots]) => ((free[gpus.indexOf(gpu)] as number) - slots) / gpu.model.slots);
  return Math.max(0, parts.reduce((sum, part) => sum + part, 0) / parts.length);
}
