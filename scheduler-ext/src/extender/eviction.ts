import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import type { Holding } from '@nvidia-virtual/kube-common/holding';
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import { isLeaving } from '../cluster/pod.js';
import type { Preemption, Preemptor } from './preemption.js';

interface EvictionOptions {
  readonly api: ApiServer;
  readonly cluster: Cluster;
  readonly preemption: Preemption;
  readonly logger: Logger;
}

/**
 * Milliseconds within which kube-scheduler nominates a node if it found victims itself.
 */
const PATIENCE = 1000;
/**
 * TTL of a promise in milliseconds. kube-scheduler retries a waiting pod at least every 5.5
 * minutes. A node that it does not name within this time rejects the pod for other reasons, and the
 * promise would only block its slots.
 */
const FORGOTTEN = 7 * 60_000;
/** Limit of the backoff while an eviction is refused or the API server is unavailable. */
const MOST_PATIENCE = 30_000;

/**
 * Preempts where kube-scheduler does not: on a node with enough free slots, but on several GPUs.
 * kube-scheduler counts slots per node, so it sees no reason to preempt there. Its other conditions
 * are fulfilled, because it asks the extender last.
 */
export class Eviction {
  readonly #options: EvictionOptions;
  readonly #end = new AbortController();
  /**
   * Preemptions in progress: UIDs of the preemptors, with those of evicted or already terminating
   * pods.
   */
  readonly #underWay = new Map<string, readonly string[]>();
  /** Nodes of promised slots, and the timers that end the promises. */
  readonly #promised = new Map<
    string,
    { readonly node: string; readonly expiry: NodeJS.Timeout }
  >();

  constructor(options: EvictionOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#end.abort();
  }

  /** Returns at once. @param nodes nodes on which the pod would fit without other pods */
  consider(pod: Preemptor, nodes: readonly string[]): void {
    const promised = this.#promised.get(pod.uid);
    if (promised && nodes.includes(promised.node)) promised.expiry.refresh();
    this.#removeEnded();
    if (this.#isUnderWay(pod.uid)) return;
    this.#underWay.set(pod.uid, []);
    void this.#preempt(pod, nodes)
      .catch(() => undefined) // it was stopped
      .finally(() => this.#underWay.get(pod.uid)?.length === 0 && this.#underWay.delete(pod.uid));
  }

  /** Forgets the preemptions for pods that are bound or gone. They are not considered again. */
  #removeEnded(): void {
    for (const [uid, victims] of this.#underWay) {
      const pod = this.#options.cluster.pod(uid);
      const waits = pod !== undefined && !pod.ended && pod.node === undefined;
      // Without victims, #preempt() is at work, and ends by itself.
      if (!waits && victims.length > 0) this.#underWay.delete(uid);
    }
  }

  /**
   * Whether a preemption for this pod is in progress. Victims take time to terminate;
   * kube-scheduler asks again afterwards, and every few minutes.
   */
  #isUnderWay(uid: string): boolean {
    const victims = this.#underWay.get(uid);
    if (victims === undefined) return false;
    if (victims.length === 0 || victims.some((victim) => this.#isThere(victim))) return true;
    this.#underWay.delete(uid);
    return false;
  }

  /** Retries until it succeeds or is not needed: kube-scheduler would not retry an eviction. */
  async #preempt(pod: Preemptor, nodes: readonly string[]): Promise<void> {
    const { cluster, logger } = this.#options;
    const evicted: string[] = [];
    for (let patience = PATIENCE; ; patience = Math.min(2 * patience, MOST_PATIENCE)) {
      await sleep(patience, undefined, { signal: this.#end.signal });
      if (evicted.some((uid) => this.#isThere(uid))) continue;
      try {
        return await this.#evict(pod, nodes, evicted);
      } catch (error) {
        logger.warn(
          { pod: pod.name, reason: (error as Error).message },
          'not all victims were evicted; the eviction is retried',
        );
        cluster.unpromise(pod.uid);
        this.#underWay.set(pod.uid, []);
      }
    }
  }

  /** @throws Error if an eviction is refused; `evicted` receives the UIDs evicted before */
  async #evict(pod: Preemptor, nodes: readonly string[], evicted: string[]): Promise<void> {
    const { api, cluster, preemption, logger } = this.#options;
    const found = this.#stillWaits(pod) ? await preemption.cheapest(pod, nodes) : undefined;
    if (!this.#stillWaits(pod)) return;
    if (found === undefined) {
      logger.debug({ pod: pod.name }, 'no pod can be evicted for it');
      return cluster.unpromise(pod.uid);
    }
    const { victims, awaited, node, holding } = found;
    this.#promise(pod, node, holding);
    this.#underWay.set(
      pod.uid,
      [...victims, ...awaited].map(({ uid }) => uid),
    );
    const names = (pods: typeof victims) => pods.map(({ name }) => name);
    const figures = { pod: pod.name, node, victims: names(victims), awaited: names(awaited) };
    logger.info(
      figures,
      victims.length > 0
        ? 'evicting, so that the freed slots share a GPU'
        : 'waiting for pods that already terminate',
    );
    for (const { namespace, name, uid } of victims) {
      const body = {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { namespace, name },
        deleteOptions: { preconditions: { uid } },
      };
      await api.request({
        method: 'POST',
        path: `/api/v1/namespaces/${namespace}/pods/${name}/eviction`,
        body,
      });
      evicted.push(uid);
    }
  }

  #promise(pod: Preemptor, node: string, holding: Holding): void {
    const { uid } = pod;
    this.#options.cluster.promise(pod, new Map([[node, holding]]), node);
    clearTimeout(this.#promised.get(uid)?.expiry);
    this.#promised.set(uid, {
      node,
      expiry: setTimeout(() => this.#forget(uid), FORGOTTEN).unref(),
    });
  }

  /** Ends a promise, unless kube-scheduler has nominated a node since. */
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
    return (
      pod !== undefined &&
      !pod.ended &&
      pod.node === undefined &&
      pod.nominated === undefined &&
      !cluster.isReserved(uid)
    );
  }
}
