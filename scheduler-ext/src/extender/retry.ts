import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { RETRIED_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import type { NodeGpus } from '../cluster/node-gpus.js';
import type { Judges } from '../placement/judges.js';
import { Steps } from '../placement/placement.js';
import type { Preemptor } from './preemption.js';

interface RetryOptions {
  readonly api: Pick<ApiServer, 'request'>;
  readonly cluster: Cluster;
  readonly judges: Judges;
  readonly logger: Logger;
}

interface Gain {
  /** Time by performance.now(). */
  readonly at: number;
  /** Whether the slots were only claimed for a group. */
  readonly claimed: boolean;
}

interface Rejected {
  readonly pod: Preemptor;
  /** Time by performance.now(). */
  readonly at: number;
}

/** Milliseconds in which kube-scheduler can retry by itself. */
const PATIENCE = 1000;
/**
 * Milliseconds after which a rejection is forgotten. Its pod waits for events that kube-scheduler
 * receives, too.
 */
const MEMORY = 60_000;
const MOST_REJECTED = 1000;
const MOST_RETRIES = 16;

/**
 * Triggers retries of pods that were rejected because kube-scheduler saw free slots before the
 * extender did. Both watch the API server independently, and kube-scheduler tries once per event.
 * Otherwise such a pod would wait for the next event, or five minutes.
 */
export class Retry {
  readonly #options: RetryOptions;
  readonly #end = new AbortController();
  readonly #rejected = new Map<string, Rejected>();
  /** Nodes with more free slots. */
  readonly #gained = new Map<NodeGpus, Gain>();

  constructor(options: RetryOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#end.abort();
  }

  /**
   * Records a pod as rejected before it is judged, so that nodes that gain slots meanwhile count.
   * @returns a function that restores the former record, for a pod that a node accepts
   */
  judging(pod: Preemptor): () => void {
    const former = this.#rejected.get(pod.uid);
    this.#rejected.delete(pod.uid);
    this.#rejected.set(pod.uid, { pod, at: performance.now() });
    const [oldest] = this.#rejected.keys();
    if (this.#rejected.size > MOST_REJECTED && oldest !== undefined) this.#rejected.delete(oldest);
    return () => {
      this.#rejected.delete(pod.uid);
      if (former) this.#rejected.set(pod.uid, former);
    };
  }

  /** Records a node that may have more free slots. @param claimed they were only claimed */
  gained(node: NodeGpus, claimed: boolean): void {
    if (this.#rejected.size === 0) return;
    if (this.#gained.size === 0) void this.#retryLater();
    const former = this.#gained.get(node);
    this.#gained.set(node, {
      at: performance.now(),
      claimed: claimed && former?.claimed !== false,
    });
  }

  async #retryLater(): Promise<void> {
    await sleep(PATIENCE, undefined, { signal: this.#end.signal }).catch(() => {});
    const gained = [...this.#gained];
    this.#gained.clear();
    if (this.#end.signal.aborted) return;
    for (const [uid, { at }] of this.#rejected)
      if (!this.#waits(uid) || at < performance.now() - MEMORY) this.#rejected.delete(uid);
    const steps = new Steps();
    const hopeful: Preemptor[] = [];
    for (const { pod, at } of this.#rejected.values()) {
      if (this.#fits(pod, at, gained, steps)) hopeful.push(pod);
      if (hopeful.length === MOST_RETRIES) break;
    }
    await Promise.all(hopeful.map((pod) => this.#retry(pod)));
  }

  /**
   * Whether the pod fits on a node that gained slots after its rejection. A member of a group is
   * not retried for slots that were only claimed: two groups that do not fit would take turns.
   */
  #fits(
    pod: Preemptor,
    since: number,
    gained: readonly (readonly [NodeGpus, Gain])[],
    steps: Steps,
  ): boolean {
    const judge = this.#options.judges.of(pod.demand);
    return gained.some(
      ([node, { at, claimed }]) =>
        at >= since &&
        !(claimed && pod.group !== undefined) &&
        'score' in judge.judge(node, pod, steps),
    );
  }

  #waits(uid: string): boolean {
    const { cluster } = this.#options;
    const pod = cluster.pod(uid);
    return pod !== undefined && pod.node === undefined && !cluster.isReserved(uid);
  }

  /**
   * Changes an annotation, because kube-scheduler retries a changed pod. Its role permits writing
   * the status, which includes annotations.
   */
  async #retry({ uid, namespace, name }: Preemptor): Promise<void> {
    const { api, logger } = this.#options;
    this.#rejected.delete(uid);
    const body = {
      metadata: { uid, annotations: { [RETRIED_ANNOTATION]: new Date().toISOString() } },
    };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/status`;
    logger.info(
      { pod: `${namespace}/${name}` },
      'slots became free; kube-scheduler is told to retry',
    );
    await api
      .request({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' })
      .catch((error: Error) => {
        logger.warn(
          { pod: `${namespace}/${name}`, reason: error.message },
          'kube-scheduler could not be told to retry',
        );
      });
  }
}
