import type { Strategy } from '@nvidia-virtual/kube-common/pod-request';
import type { Gpu } from '../cluster/gpu.js';
import type { NodeGpus } from '../cluster/node-gpus.js';
import type { Demand } from './demand.js';
import { type Free, freeFor, type Placement, type PodIdentity, place, Steps } from './placement.js';
import { type Reason, Reasons } from './reason.js';

/** The score of a node for a pod, or the reason why the pod does not fit. */
type Verdict = { readonly score: number } | Reason;

/** Maximum score of kube-scheduler's scale. */
export const MOST_SCORE = 10;
const SCORED: readonly Verdict[] = Array.from({ length: MOST_SCORE + 1 }, (_, score) => ({
  score,
}));
/**
 * Weight of the GPU's fill level; the rest is the node's. Free slots on one GPU are scarcer.
 */
const OF_GPU = 0.7;

/** Size of the cache. More than the states of all nodes of a cluster. */
const MOST_KNOWN = 20_000;

/** Judges nodes for pods with the same demand. Caches verdicts by state. */
export class Judge {
  readonly #demand: Demand;
  readonly #strategy: Strategy;
  readonly #reasons: Reasons;
  /** Keyed by the state of the node. */
  readonly #known = new Map<string, Verdict>();
  /** The common case, one container and one GPU, is judged without a search. */
  readonly #single: boolean;

  constructor(demand: Demand, strategy: Strategy) {
    const { needs } = demand;
    this.#demand = demand;
    this.#strategy = demand.strategy(strategy);
    this.#reasons = new Reasons(demand);
    this.#single = needs.length === 1 && needs[0]?.gpus === 1;
  }

  /** @param steps for all nodes. A verdict is kept only if some are left, or the pod fits. */
  judge(node: NodeGpus | undefined, pod: PodIdentity, steps = new Steps()): Verdict {
    if (node === undefined) return this.#reasons.withoutGpus(node);
    // A GPU with a given UUID is on one node only, so nodes in an equal state still differ.
    const state = this.#demand.namesGpus ? undefined : node.state;
    if (state === undefined) return this.#judge(node, freeFor(pod, node), steps);
    const known = this.#known.get(state);
    if (known) return known;
    if (this.#known.size === MOST_KNOWN) this.#known.clear();
    const verdict = this.#judge(node, freeFor(pod, node), steps);
    if ('score' in verdict || !steps.areSpent) this.#known.set(state, verdict);
    return verdict;
  }

  #judge(node: NodeGpus, free: Free, steps: Steps): Verdict {
    if (node.gpus.length === 0) return this.#reasons.withoutGpus(node);
    const left = this.#single ? this.#scan(node, free) : this.#search(node, free, steps);
    if (left >= 0) return SCORED[this.#score(left, node)] as Verdict;
    return this.#reasons.forbidding(node, steps) ?? this.#reasons.full(node, free);
  }

  /** Fraction of the chosen GPU that stays free; negative if none fits. */
  #scan({ gpus }: NodeGpus, free: Free): number {
    let best = -1;
    for (let index = 0; index < gpus.length; index++) {
      const gpu = gpus[index] as Gpu;
      const left = (free[index] as number) - this.#demand.takes(0, gpu.model);
      if (left < 0 || !this.#demand.suits(0, gpu)) continue;
      const part = left / gpu.model.slots;
      if (best < 0 || (this.#strategy === 'binpack' ? part < best : part > best)) best = part;
    }
    return best;
  }

  #search({ gpus }: NodeGpus, free: Free, steps: Steps): number {
    const placement = place(this.#demand, gpus, free, this.#strategy, steps);
    return placement === undefined ? -1 : partLeft(this.#demand, placement, gpus, free);
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
function partLeft(demand: Demand, placement: Placement, gpus: readonly Gpu[], free: Free): number {
  const taken = new Map<Gpu, number>();
  for (const [index, { init }] of demand.needs.entries()) {
    for (const gpu of placement[index] ?? []) {
      const [before, slots] = [taken.get(gpu) ?? 0, demand.takes(index, gpu.model)];
      taken.set(gpu, init ? Math.max(before, slots) : before + slots);
    }
  }
  const parts = [...taken].map(
    ([gpu, slots]) => ((free[gpus.indexOf(gpu)] as number) - slots) / gpu.model.slots,
  );
  return Math.max(0, parts.reduce((sum, part) => sum + part, 0) / parts.length);
}
