import type { V1PodDisruptionBudget } from '@kubernetes/client-node';
import type { Holding } from '@nvidia-virtual/kube-common/holding';
import type { Strategy } from '@nvidia-virtual/kube-common/pod-request';
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import type { NodeGpus } from '../cluster/node-gpus.js';
import { isLeaving, type PodRecord } from '../cluster/pod.js';
import type { Demand } from '../placement/demand.js';
import { freeFor, holdingOf, type Placement, place, Steps } from '../placement/placement.js';
import { protects } from './budget.js';
import type { MetaVictims } from './messages.js';

interface PreemptionOptions {
  readonly cluster: Cluster;
  readonly strategy: Strategy;
  /** Reads all PodDisruptionBudgets of the cluster. */
  readonly budgets: () => Promise<readonly V1PodDisruptionBudget[]>;
  readonly logger: Logger;
}

export type Preemptor = PodRecord & { readonly demand: Demand };

/** Victims, and the slots that the preemptor gets. */
interface Sacrifice {
  readonly victims: readonly PodRecord[];
  /** Pods that are already being deleted and whose slots it gets, too. */
  readonly awaited: readonly PodRecord[];
  readonly holding: Holding;
}

/** Limit on nodes to compare, as in kube-scheduler. */
const MOST_NODES = 100;

/**
 * Corrects the victims that kube-scheduler chose. kube-scheduler counts slots per node, so its
 * victims may free slots on several GPUs. The corrected victims free slots where the pod fits.
 */
export class Preemption {
  readonly #options: PreemptionOptions;
  #reading: Promise<readonly V1PodDisruptionBudget[]> | undefined;

  constructor(options: PreemptionOptions) {
    this.#options = options;
  }

  /** Corrects the victims of each node. Drops nodes on which preemption does not help. */
  async correct(
    pod: Preemptor,
    asked: Readonly<Record<string, MetaVictims>>,
  ): Promise<Record<string, MetaVictims>> {
    const { cluster, logger } = this.#options;
    const answer: Record<string, MetaVictims> = {};
    const holdings = new Map<string, Holding>();
    const budgets = await this.#budgets();
    const steps = new Steps();
    for (const [name, victims] of Object.entries(asked)) {
      const node = cluster.node(name);
      const uids = (victims.Pods ?? []).map(({ UID }) => UID);
      const sacrifice = node && this.#sacrificeOn(pod, node, uids, steps);
      if (sacrifice === undefined) continue;
      const corrected = [
        ...uids.filter((uid) => !node?.holders.has(uid)),
        ...sacrifice.victims.map(({ uid }) => uid),
      ];
      const same = corrected.length === uids.length && corrected.every((uid) => uids.includes(uid));
      if (!same)
        logger.info(
          { pod: pod.name, node: name, asked: uids, corrected },
          'victims corrected, so that the freed slots share a GPU',
        );
      const violations = same ? victims.NumPDBViolations : violationsBy(sacrifice.victims, budgets);
      answer[name] = { Pods: corrected.map((UID) => ({ UID })), NumPDBViolations: violations };
      holdings.set(name, sacrifice.holding);
    }
    cluster.promise(pod, holdings);
    return answer;
  }

  /** The node with the least important victims, none of which a budget protects. */
  async cheapest(
    pod: Preemptor,
    names: readonly string[],
  ): Promise<(Sacrifice & { readonly node: string }) | undefined> {
    const budgets = await this.#budgets();
    const steps = new Steps();
    let best: (Sacrifice & { readonly node: string }) | undefined;
    for (const node of this.#promising(names)) {
      if (steps.areSpent) break;
      const sacrifice = this.#sacrificeOn(pod, node, [], steps);
      if (sacrifice === undefined || violationsBy(sacrifice.victims, budgets) > 0) continue;
      if (best === undefined || isBetter(sacrifice, best)) best = { ...sacrifice, node: node.name };
      if (best?.victims.length === 0) break;
    }
    return best;
  }

  /** Nodes with terminating pods come first: they may need no further victims. */
  #promising(names: readonly string[]): NodeGpus[] {
    const nodes = names.flatMap((name) => this.#options.cluster.node(name) ?? []);
    const leaving = nodes.filter((node) => this.#holdersOn(node).some(isLeaving));
    return [...new Set([...leaving, ...nodes])].slice(0, MOST_NODES);
  }

  /** Bound pods only: others, whose slots are reserved, cannot be evicted. */
  #holdersOn({ holders, name }: NodeGpus): PodRecord[] {
    const pods = [...holders.keys()].flatMap((uid) => this.#options.cluster.pod(uid) ?? []);
    return pods.filter(({ node }) => node === name);
  }

  async #budgets(): Promise<readonly V1PodDisruptionBudget[]> {
    try {
      // Many pods may wait at the same time.
      this.#reading ??= this.#options.budgets().finally(() => {
        this.#reading = undefined;
      });
      return await this.#reading;
    } catch (error) {
      this.#options.logger.warn(
        { reason: (error as Error).message },
        'disruption budgets cannot be read; victims are chosen without them',
      );
      return [];
    }
  }

  #sacrificeOn(
    pod: Preemptor,
    node: NodeGpus,
    asked: readonly string[],
    steps: Steps,
  ): Sacrifice | undefined {
    const holders = this.#holdersOn(node);
    const chosen = holders.filter(({ uid }) => asked.includes(uid));
    const awaited = holders.filter((holder) => isLeaving(holder) && !chosen.includes(holder));
    // Keep victims that suffice: kube-scheduler may need them for CPU or memory, too.
    const placement =
      asked.length > 0
        ? new Attempt(pod, node, [...chosen, ...awaited], this.#options.strategy, steps).place()
        : undefined;
    if (placement) return { victims: chosen, awaited, holding: holdingOf(pod.demand, placement) };
    return this.#fewest(pod, node, holders, asked, steps);
  }

  /**
   * Removes all possible victims, then reprieves them by importance as long as the pod still fits.
   */
  #fewest(
    pod: Preemptor,
    node: NodeGpus,
    holders: readonly PodRecord[],
    asked: readonly string[],
    steps: Steps,
  ): Sacrifice | undefined {
    const lower = holders.filter(
      ({ leavesAt, priority }) => leavesAt === undefined && priority < pod.priority,
    );
    const leaving = holders.filter(isLeaving);
    const { strategy } = this.#options;
    const placement = new Attempt(pod, node, [...lower, ...leaving], strategy, steps).place();
    if (placement === undefined) return undefined;
    let best: Sacrifice | undefined;
    for (const gpu of [undefined, ...node.gpus]) {
      // Reprieve pods on the chosen GPU late, so that this GPU is emptied. Terminating pods come
      // last, because they cost nothing.
      const on = (holder: PodRecord) =>
        gpu !== undefined && node.holdingOf(holder)?.has(gpu.uuid) ? 1 : 0;
      const order = lower.toSorted(
        (a, b) => on(a) - on(b) || b.priority - a.priority || rank(asked, a) - rank(asked, b),
      );
      const gone = [...order, ...leaving];
      const sacrifice = reprieve(new Attempt(pod, node, gone, strategy, steps), gone, placement);
      if (sacrifice && (best === undefined || isBetter(sacrifice, best))) best = sacrifice;
    }
    return best;
  }
}

/** Places a pod on a node without some of its holders. */
class Attempt {
  readonly #free: number[];

  constructor(
    readonly pod: Preemptor,
    readonly node: NodeGpus,
    gone: readonly PodRecord[],
    readonly strategy: Strategy,
    readonly steps: Steps,
  ) {
    this.#free = freeFor(pod, node);
    for (const one of gone) this.remove(one);
  }

  remove(holder: PodRecord): void {
    this.#add(holder, 1);
  }

  putBack(holder: PodRecord): void {
    this.#add(holder, -1);
  }

  place(): Placement | undefined {
    return place(this.pod.demand, this.node.gpus, this.#free, this.strategy, this.steps);
  }

  #add(holder: PodRecord, sign: 1 | -1): void {
    for (const [index, gpu] of this.node.gpus.entries())
      (this.#free[index] as number) += sign * this.node.slotsHeld(holder, gpu);
  }
}

/**
 * @param order the pods that are gone in the attempt
 * @returns undefined if no steps are left: more pods than needed would be victims
 */
function reprieve(
  attempt: Attempt,
  order: readonly PodRecord[],
  first: Placement,
): Sacrifice | undefined {
  const gone = new Set(order);
  let placement = first;
  for (const candidate of order) {
    if (attempt.steps.areSpent) return undefined;
    attempt.putBack(candidate);
    const still = attempt.place();
    if (still) gone.delete(candidate);
    else attempt.remove(candidate);
    placement = still ?? placement;
  }
  const victims = [...gone].filter(({ leavesAt }) => leavesAt === undefined);
  return {
    victims,
    awaited: [...gone].filter((one) => !victims.includes(one)),
    holding: holdingOf(attempt.pod.demand, placement),
  };
}

/** kube-scheduler's victims are preferred, because it may have further reasons. */
function rank(asked: readonly string[], { uid }: PodRecord): number {
  return asked.includes(uid) ? 1 : 0;
}

/**
 * Compares as kube-scheduler does: by the highest priority of a victim, then by their number. No
 * victim at all is best.
 */
function isBetter(one: Sacrifice, other: Sacrifice): boolean {
  const highest = ({ victims }: Sacrifice) => Math.max(...victims.map(({ priority }) => priority));
  return (
    highest(one) < highest(other) ||
    (highest(one) === highest(other) && one.victims.length < other.victims.length)
  );
}

/** The number of victims that violate a budget. */
function violationsBy(
  victims: readonly PodRecord[],
  budgets: readonly V1PodDisruptionBudget[],
): number {
  const left = new Map(budgets.map((budget) => [budget, budget.status?.disruptionsAllowed ?? 0]));
  return victims.filter((victim) => {
    const protecting = budgets.filter((budget) => protects(budget, victim));
    for (const budget of protecting) left.set(budget, (left.get(budget) ?? 0) - 1);
    return protecting.some((budget) => (left.get(budget) ?? 0) < 0);
  }).length;
}
