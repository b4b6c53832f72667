import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiError, ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { Backoff } from '@nvidia-virtual/service/backoff';
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import type { PodRecord } from '../cluster/pod.js';
import { type Figures, sentence } from '../errors.js';
import { warnPod } from './pod-event.js';

interface ReplacementOptions {
  readonly api: Pick<ApiServer, 'request'>;
  readonly cluster: Cluster;
  readonly logger: Logger;
  /** Milliseconds for which a GPU must be unhealthy. A driver can be silent for a moment. */
  readonly afterMs: number;
  /** @default 10 minutes */
  readonly deadlineMs?: number;
  /** Undefined after all nodes and pods were listed. */
  readonly condition: () => string | undefined;
}

/** A pod and its GPU that is lost. */
interface Stranded {
  readonly pod: PodRecord;
  readonly node: string;
  readonly gpu: string;
}

const LONGEST_LOOK_MS = 5000;
const BACKOFF = { first: 1000, longest: 60_000 };
const DEADLINE_MS = 10 * 60_000;
const NOT_FOUND = 404;
const EVENT_REASON = 'GpuLost';

type Told = 'GPU_LOST_EVICTION' | 'GPU_LOST_EVICTION_REFUSED';

/**
 * Evicts pods whose GPU is lost, so that their controllers create others elsewhere. Pods without a
 * controller stay, because nobody would replace them. Uses the Eviction API, so
 * PodDisruptionBudgets are respected. Each extender of the cluster does this: a second eviction of
 * a pod has no effect.
 */
export class Replacement {
  readonly #options: ReplacementOptions;
  readonly #end = new AbortController();
  /** When a GPU was first seen unhealthy, by performance.now(); keyed by node and GPU. */
  #lostSince = new Map<string, number>();
  /** UIDs of pods whose evictions are in progress. */
  readonly #underWay = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: ReplacementOptions) {
    this.#options = options;
    const every = Math.min(options.afterMs, LONGEST_LOOK_MS);
    this.#timer = setInterval(() => this.#look(), every).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#end.abort();
  }

  #look(): void {
    const { cluster, condition, afterMs } = this.#options;
    if (condition() !== undefined) return;
    const now = performance.now();
    const lostSince = new Map<string, number>();
    for (const node of cluster.nodes()) {
      for (const { uuid, healthy } of node.gpus) {
        if (healthy) continue;
        const key = `${node.name} ${uuid}`;
        const since = this.#lostSince.get(key) ?? now;
        lostSince.set(key, since);
        if (now - since < afterMs) continue;
        for (const { uid, holding } of node.holders.values())
          if (holding?.has(uuid)) this.#consider(uid, node.name, uuid);
      }
    }
    this.#lostSince = lostSince;
  }

  #consider(uid: string, node: string, gpu: string): void {
    const pod = this.#options.cluster.pod(uid);
    if (pod === undefined || this.#underWay.has(uid)) return;
    const stranded = { pod, node, gpu };
    if (!this.#isStranded(stranded)) return;
    this.#underWay.add(uid);
    void this.#evict(stranded)
      .catch(() => undefined) // it was stopped
      .finally(() => this.#underWay.delete(uid));
  }

  /** Whether the pod still runs on a lost GPU, and something would replace it. */
  #isStranded({ pod: { uid }, node, gpu }: Stranded): boolean {
    const { cluster } = this.#options;
    const pod = cluster.pod(uid);
    const lost = cluster.node(node)?.gpus.some(({ uuid, healthy }) => uuid === gpu && !healthy);
    return (
      lost === true &&
      pod !== undefined &&
      pod.node === node &&
      pod.controlled &&
      !pod.ended &&
      pod.leavesAt === undefined
    );
  }

  /** Retries until the pod leaves, or its GPU recovers. */
  async #evict(stranded: Stranded): Promise<void> {
    const { logger, deadlineMs = DEADLINE_MS } = this.#options;
    const figures = figuresOf(stranded);
    const backoff = new Backoff(BACKOFF);
    const begin = performance.now();
    await this.#tell(stranded, 'GPU_LOST_EVICTION', figures);
    for (let told = false; this.#isStranded(stranded); ) {
      const reason = await this.#ask(stranded.pod);
      if (reason === undefined) {
        logger.info(figures, 'evicted, because its GPU is lost');
        return;
      }
      const seconds = Math.round((performance.now() - begin) / 1000);
      if (!told && seconds * 1000 >= deadlineMs) {
        const refusal = { ...figures, seconds, reason };
        await this.#tell(stranded, 'GPU_LOST_EVICTION_REFUSED', refusal);
        told = true;
      }
      await sleep(backoff.next(), undefined, { signal: this.#end.signal });
    }
  }

  /** @returns why the pod was not evicted; undefined if it leaves, or is gone */
  async #ask({ namespace, name, uid }: PodRecord): Promise<string | undefined> {
    const body = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { namespace, name },
      deleteOptions: { preconditions: { uid } },
    };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
    try {
      await this.#options.api.request({ method: 'POST', path, body });
      return undefined;
    } catch (error) {
      const { status, message } = error as ApiError;
      return status === NOT_FOUND ? undefined : message;
    }
  }

  async #tell({ pod, node }: Stranded, code: Told, figures: Figures): Promise<void> {
    const { api, logger } = this.#options;
    const message = sentence(code, figures);
    logger.warn({ pod: `${pod.namespace}/${pod.name}`, node }, message);
    await warnPod(api, pod, { reason: EVENT_REASON, message, subject: code }).catch(
      (error: Error) => logger.warn({ pod: pod.name }, error.message),
    );
  }
}

function figuresOf({ pod: { namespace, name }, node, gpu }: Stranded) {
  return { pod: `${namespace}/${name}`, node, gpu };
}
