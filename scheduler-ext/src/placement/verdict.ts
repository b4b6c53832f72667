import type { Gpu, NodeGpus } from '../cluster/node-gpus.js';
import type { Need } from './demand.js';
import { type Claimant, type Free, freeFor, type Placement, place, type Strategy } from './placement.js';
import { type Reason, Reasons } from './reason.js';

/** What a node is to a pod: how well it fits, or why it does not. */
export type Verdict = { readonly score: number } | Reason;

/** kube-scheduler's scale. */
const MOST_SCORE = 10;
/** How full the GPU gets counts for more than how full its node is: slots that belong together are scarce on a GPU. */
const OF_GPU = 0.7;

/** Judges nodes for one pod; what is alike is worked out once. */
export class Judge {
  readonly #claimant: Claimant;
  readonly #strategy: Strategy;
  readonly #reasons: Reasons;
  /** The common case, one container and one GPU, is judged without a search. */
  readonly #single: Need | undefined;

  constructor(claimant: Claimant, strategy: Strategy) {
    const { needs } = claimant.demand;
    this.#claimant = claimant;
    this.#strategy = strategy;
    this.#reasons = new Reasons(claimant.demand);
    this.#single = needs.length === 1 && needs[0]?.gpus === 1 ? needs[0] : undefined;
  }

  judge(node: NodeGpus | undefined): Verdict {
    if (node === undefined || node.gpus.length === 0) return this.#reasons.withoutGpus(node);
    const { demand } = this.#claimant;
    const left = this.#single ? this.#scan(this.#single, node) : this.#search(node);
    if (left >= 0) return { score: this.#score(left, node) };
    return this.#reasons.forbidding(node) ?? this.#reasons.full(node, freeFor(this.#claimant, node), demand);
  }

  /** Part of the chosen GPU that stays free; below 0 when none fits. */
  #scan(need: Need, node: NodeGpus): number {
    const { gpus, promised, holders } = node;
    const { demand, uid } = this.#claimant;
    const free = promised.size > 0 || holders.has(uid) ? freeFor(this.#claimant, node) : undefined;
    let best = -1;
    for (let index = 0; index < gpus.length; index++) {
      const gpu = gpus[index] as Gpu;
      const left = (free?.[index] ?? gpu.model.slots - gpu.used) - need.slots;
      if (left < 0 || !demand.suits(0, gpu)) continue;
      const part = left / gpu.model.slots;
      if (best < 0 || (this.#strategy === 'binpack' ? part < best : part > best)) best = part;
    }
    return best;
  }

  #search(node: NodeGpus): number {
    const free = freeFor(this.#claimant, node);
    const placement = place(this.#claimant.demand, node.gpus, free, this.#strategy);
    return placement === undefined ? -1 : partLeft(this.#claimant.demand.needs, placement, node.gpus, free);
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
