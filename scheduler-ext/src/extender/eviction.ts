import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiServer } from '@nvidia-virtual/kubernetes/api-server';
import type { Holding } from '@nvidia-virtual/kubernetes/holding';
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import { isLeaving } from '../cluster/pod.js';
import type { Preemption, Preemptor } from './preemption.js';

export interface EvictionOptions {
  readonly api: ApiServer;
  readonly cluster: Cluster;
  readonly preemption: Preemption;
  readonly logger: Logger;
}

/** Within this time, in milliseconds, kube-scheduler has nominated a node, if it found victims itself. */
const PATIENCE = 1000;
/**
 * kube-scheduler tries a waiting pod again at least every five and a half minutes. A node that it did not name for so long, in milliseconds, does
 * not take the pod for other reasons, and what is promised there would be free for nobody.
 */
const FORGOTTEN = 7 * 60_000;
/** Between two tries, where an eviction is refused or the API server is away. */
const MOST_PATIENCE = 30_000;

/**
 * Preempts where kube-scheduler does not: on a node whose free slots suffice in number, but lie on several GPUs, it sees nothing to preempt
 * for. All else that it asks of a node is fulfilled there already, or the extender would not have been asked about it.
 */
export class Eviction {
  readonly #options: EvictionOptions;
  readonly #end = new AbortController();
  /** Pods that wait for this to happen, and the UIDs of those that were evicted for them or leave anyway. */
  readonly #underWay = new Map<string, readonly string[]>();
  /** Where pods were promised slots here, and what takes that back. */
  readonly #promised = new Map<string, { readonly node: string; readonly expiry: NodeJS.Timeout }>();

  constructor(options: EvictionOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#end.abort();
  }

  /** Returns at once. @param nodes that would take the pod if others were not there */
  consider(pod: Preemptor, nodes: readonly string[]): void {
    const promised = this.#promised.get(pod.uid);
    if (promised && nodes.includes(promised.node)) promised.expiry.refresh();
    if (this.#isUnderWay(pod.uid)) return;
    this.#underWay.set(pod.uid, []);
    void this.#preempt(pod, nodes)
      .catch(() => undefined) // it was stopped
      .finally(() => this.#underWay.get(pod.uid)?.length === 0 && this.#underWay.delete(pod.uid));
  }

  /** Those that go take their time to end. kube-scheduler asks about the pod again when they have, and every few minutes. */
  #isUnderWay(uid: string): boolean {
    const victims = this.#underWay.get(uid);
    if (victims === undefined) return false;
    if (victims.length === 0 || victims.some((victim) => this.#isThere(victim))) return true;
    this.#underWay.delete(uid);
    return false;
  }

  /** Until it is done or needless: kube-scheduler does not ask again because an eviction failed. */
  async #preempt(pod: Preemptor, nodes: readonly string[]): Promise<void> {
    const { cluster, logger } = this.#options;
    const evicted: string[] = [];
    for (let patience = PATIENCE; ; patience = Math.min(2 * patience, MOST_PATIENCE)) {
      await sleep(patience, undefined, { signal: this.#end.signal });
      if (evicted.some((uid) => this.#isThere(uid))) continue;
      try {
        return await this.#evict(pod, nodes, evicted);
      } catch (error) {
        logger.warn({ pod: pod.name, reason: (error as Error).message }, 'nobody was evicted, or not all; it is tried again');
        cluster.unpromise(pod.uid);
        this.#underWay.set(pod.uid, []);
      }
    }
  }

  /** @throws Error where an eviction is refused; `evicted` are those that went before */
  async #evict(pod: Preemptor, nodes: readonly string[], evicted: string[]): Promise<void> {
    const { api, cluster, preemption, logger } = this.#options;
    const found = this.#stillWaits(pod) ? await preemption.cheapest(pod, nodes) : undefined;
    if (!this.#stillWaits(pod)) return;
    if (found === undefined) return cluster.unpromise(pod.uid);
    const { victims, awaited, node, holding } = found;
    this.#promise(pod, node, holding);
    this.#underWay.set(
      pod.uid,
      [...victims, ...awaited].map(({ uid }) => uid),
    );
    const names = (pods: typeof victims) => pods.map(({ name }) => name);
    const figures = { pod: pod.name, node, victims: names(victims), awaited: names(awaited) };
    logger.info(figures, victims.length > 0 ? 'evicting, so that the freed slots share a GPU' : 'waiting for pods that leave anyway');
    for (const { namespace, name, uid } of victims) {
      const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name }, deleteOptions: { preconditions: { uid } } };
      await api.request({ method: 'POST', path: `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, body });
      evicted.push(uid);
    }
  }

  #promise(pod: Preemptor, node: string, holding: Holding): void {
    const { uid } = pod;
    this.#options.cluster.promise(pod, new Map([[node, holding]]), node);
    clearTimeout(this.#promised.get(uid)?.expiry);
    this.#promised.set(uid, { node, expiry: setTimeout(() => this.#forget(uid), FORGOTTEN).unref() });
  }

  /** Where kube-scheduler has nominated a node since, the promise is that one's. */
  #forget(uid: string): void {
    const { cluster } = this.#options;
    this.#promised.delete(uid);
    if (cluster.pod(uid)?.nominated === undefined) cluster.unpromise(uid);
  }

  #isThere(uid: string): boolean {
    const pod = this.#options.cluster.pod(uid);
    return pod !== undefined && !pod.ended && (pod.leavesAt === undefined || isLeaving(pod));
  }

  #stillWaits({ uid }: Preemptor): boolean {
    const { cluster } = this.#options;
    const pod = cluster.pod(uid);
    return pod !== undefined && !pod.ended && pod.node === undefined && pod.nominated === undefined && !cluster.isReserved(uid);
  }
}
