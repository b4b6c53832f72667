import type { Strategy } from '@nvidia-virtual/kube-common/pod-request';
import type { Cluster } from '../cluster/cluster.js';
import type { PodRecord } from '../cluster/pod.js';
import { freeFor, holdingOf, place } from '../placement/placement.js';
import type { Preemptor } from './preemption.js';

interface GroupsOptions {
  readonly cluster: Cluster;
  readonly strategy: Strategy;
  /** Milliseconds. @default 3000 */
  readonly afterFilter?: number;
  /** Milliseconds. @default 60000 */
  readonly afterBind?: number;
}

/**
 * TTL of claims after the last filter request for a member. kube-scheduler binds right after it has
 * filtered all members, and does not tell if it gives up.
 */
const AFTER_FILTER = 3000;
/** TTL after a binding of a member: the group is accepted, and its volumes can take time. */
const AFTER_BIND = 60_000;

interface Group {
  /** UIDs of members that were filtered in this round of kube-scheduler. */
  readonly members: Set<string>;
  /** Whether one of them found no node: kube-scheduler will bind none, or very soon. */
  failed: boolean;
  /** When the claims end, by performance.now(). */
  until: number;
  timer: NodeJS.Timeout;
}

/**
 * Claims slots for members of a group (a gang) when they are filtered. kube-scheduler filters all
 * members before it binds the first one. Without claims, each of them could be given the same free
 * slots, and some of the group would be bound while the rest finds no room.
 */
export class Groups {
  readonly #options: GroupsOptions;
  readonly #groups = new Map<string, Group>();

  constructor(options: GroupsOptions) {
    this.#options = options;
  }

  stop(): void {
    for (const { timer } of this.#groups.values()) clearTimeout(timer);
  }

  /** A member is about to be judged: ends its former claim. */
  filtering({ uid, group: name = '' }: PodRecord): void {
    const members = [...(this.#groups.get(name)?.members ?? [])];
    // A round filters each member, the same one perhaps again: its nominated node alone, then all.
    if (members.includes(uid) && members.at(-1) !== uid) this.#end(name);
    this.#options.cluster.unclaim(uid);
  }

  /**
   * Claims slots for a member. The claims of a group end as soon as a member finds no node, so that
   * a group that does not fit keeps no slots from other pods.
   * @param nodes on which it fits, the best first
   * @returns the nodes that the pod may get: that of the claim
   */
  claim(pod: Preemptor, nodes: readonly string[]): readonly string[] {
    const { cluster, strategy, afterFilter = AFTER_FILTER } = this.#options;
    const group = this.#extend(pod, afterFilter);
    group.members.add(pod.uid);
    if (group.failed) return nodes;
    for (const name of nodes) {
      const node = cluster.node(name);
      const placement = node && place(pod.demand, node.gpus, freeFor(pod, node), strategy);
      if (placement === undefined) continue;
      cluster.claim(pod, name, holdingOf(pod.demand, placement));
      return [name];
    }
    group.failed = true;
    this.#unclaim(group);
    return [];
  }

  /** A member is being bound, so kube-scheduler has accepted its group. */
  binding(pod: PodRecord): void {
    if (pod.group !== undefined && this.#groups.has(pod.group))
      this.#extend(pod, this.#options.afterBind ?? AFTER_BIND);
  }

  #extend({ group: name = '' }: PodRecord, milliseconds: number): Group {
    const known = this.#groups.get(name);
    const until = Math.max(known?.until ?? 0, performance.now() + milliseconds);
    clearTimeout(known?.timer);
    const timer = setTimeout(() => this.#end(name), until - performance.now()).unref();
    const { members = new Set<string>(), failed = false } = known ?? {};
    const group = { members, failed, until, timer };
    this.#groups.set(name, group);
    return group;
  }

  #end(name: string): void {
    const group = this.#groups.get(name);
    this.#groups.delete(name);
    clearTimeout(group?.timer);
    if (group) this.#unclaim(group);
  }

  #unclaim({ members }: Group): void {
    for (const uid of members) this.#options.cluster.unclaim(uid);
  }
}
