import { CoreV1Api, type CoreV1Event, type KubeConfig } from '@kubernetes/client-node';
import type { Logger } from 'pino';

/** What Kubernetes calls the kind of an event. Users filter by these, so they stay. */
export type EventReason =
  | 'GpuNotAvailable'
  | 'GpuRequestWrong'
  | 'GpuAccessRefused'
  | 'GpuVersionUnknown'
  | 'GpuMemoryQuotaReached'
  | 'GpuWorkerDied';

export interface EventTarget {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

interface Told {
  event: CoreV1Event | undefined;
  count: number;
  /** In milliseconds. */
  at: number;
  first: Date;
}

/** The same sentence is counted up so often at most. */
const AGAIN_MS = 60_000;
/** So many different sentences a pod may have in that time; what is more is in the log only. */
const MOST_OF_A_POD = 10;
const FORGET_MS = 60 * 60_000;
const LONGEST_MESSAGE = 1024;

/** Tells a pod's user what went wrong, as events of the pod. It is the best that can be done: what the API server does not take is lost. */
export class PodEvents {
  readonly #api: CoreV1Api;
  readonly #node: string;
  readonly #logger: Logger;
  readonly #told = new Map<string, Told>();

  constructor(config: KubeConfig, node: string, logger: Logger) {
    this.#api = config.makeApiClient(CoreV1Api);
    this.#node = node;
    this.#logger = logger;
  }

  warn(pod: EventTarget, reason: EventReason, sentence: string): void {
    const now = Date.now();
    const key = `${pod.uid} ${reason} ${sentence}`;
    this.#forget(now);
    const told = this.#told.get(key);
    if (told) this.#repeat(pod, told, now);
    else if (this.#recentOf(pod, now) < MOST_OF_A_POD) void this.#tell(pod, reason, sentence, key, now);
  }

  #recentOf({ uid }: EventTarget, now: number): number {
    return [...this.#told].filter(([key, { at }]) => key.startsWith(`${uid} `) && now - at < AGAIN_MS).length;
  }

  async #tell(pod: EventTarget, reason: EventReason, sentence: string, key: string, at: number): Promise<void> {
    const told: Told = { event: undefined, count: 1, at, first: new Date(at) };
    this.#told.set(key, told);
    const { namespace, name, uid } = pod;
    const body: CoreV1Event = {
      metadata: { generateName: `${name.slice(0, 200)}.gpu-`, namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
      ...{ type: 'Warning', reason, message: sentence.slice(0, LONGEST_MESSAGE) },
      source: { component: 'nvidia-virtual', host: this.#node },
      ...{ count: 1, firstTimestamp: told.first, lastTimestamp: told.first },
    };
    try {
      told.event = await this.#api.createNamespacedEvent({ namespace, body });
    } catch (error) {
      // It may be told anew.
      this.#told.delete(key);
      this.#noteLost(pod, error);
    }
  }

  #repeat(pod: EventTarget, told: Told, now: number): void {
    told.count++;
    if (!told.event || now - told.at < AGAIN_MS) return;
    told.at = now;
    const { namespace, name = '' } = told.event.metadata;
    const body = { ...told.event, count: told.count, lastTimestamp: new Date(now) };
    const replaced = this.#api.replaceNamespacedEvent({ namespace: namespace ?? pod.namespace, name, body });
    replaced.then((event) => Object.assign(told, { event })).catch((error) => this.#noteLost(pod, error));
  }

  #noteLost({ namespace, name }: EventTarget, error: unknown): void {
    const reason = (error as Error).message.split('\n')[0];
    this.#logger.warn({ pod: `${namespace}/${name}` }, `An event of the pod could not be written: ${reason}.`);
  }

  #forget(now: number): void {
    for (const [key, { at }] of this.#told) if (now - at > FORGET_MS) this.#told.delete(key);
  }
}
