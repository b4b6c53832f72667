import { randomBytes } from 'node:crypto';
import type { CoreV1Event } from '@kubernetes/client-node';
import { ApiError, type ApiServer } from '@nvidia-virtual/kubernetes/api-server';
import type { Logger } from 'pino';

/** What Kubernetes calls the kind of an event. Users filter by these, so they stay. */
export type EventReason =
  | 'GpuNotAvailable'
  | 'GpuRequestWrong'
  | 'GpuAccessRefused'
  | 'GpuVersionUnknown'
  | 'GpuMemoryQuotaReached'
  | 'GpuLimitReached'
  | 'GpuWorkerDied';

export interface EventTarget {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

interface Told {
  readonly reason: EventReason;
  /** Of the event. */
  readonly name: string;
  readonly first: Date;
  /** The latest one. */
  sentence: string;
  last: Date;
  count: number;
  /** It will be written again. */
  again?: NodeJS.Timeout;
  /** Resolves once that is over, well or not. */
  written: Promise<void>;
  /** When it was tried last; in milliseconds. */
  at: number;
  /** Since when it has been tried in vain; in milliseconds. */
  failing?: number;
}

/** The same event is counted up so often at most. */
const AGAIN_MS = 60_000;
/** So many different ones a pod may have in that time; what is more is in the log only. */
const MOST_OF_A_POD = 10;
const FORGET_MS = 60 * 60_000;
const LONGEST_MESSAGE = 1024;

/** Tells a pod's user what went wrong, as events of the pod. While the API server is away they wait for it, an hour at most. */
export class PodEvents {
  readonly #api: ApiServer;
  readonly #node: string;
  readonly #logger: Logger;
  readonly #againMs: number;
  readonly #told = new Map<string, Told>();

  constructor(api: ApiServer, node: string, logger: Logger, againMs = AGAIN_MS) {
    this.#api = api;
    this.#node = node;
    this.#logger = logger;
    this.#againMs = againMs;
  }

  /** @param subject what it is about: another sentence about the same takes the place of the former, and is counted. */
  warn(pod: EventTarget, reason: EventReason, sentence: string, subject = sentence): void {
    const now = Date.now();
    const key = `${pod.uid} ${reason} ${subject}`;
    this.#forget(now);
    const told = this.#told.get(key);
    if (told) this.#repeat(pod, told, sentence);
    else if (this.#recentOf(pod, now) < MOST_OF_A_POD) this.#tell(pod, reason, sentence, key, now);
  }

  #recentOf({ uid }: EventTarget, now: number): number {
    return [...this.#told].filter(([key, { last }]) => key.startsWith(`${uid} `) && now - last.getTime() < this.#againMs).length;
  }

  #tell(pod: EventTarget, reason: EventReason, sentence: string, key: string, at: number): void {
    const name = `${pod.name.slice(0, 200)}.gpu-${randomBytes(8).toString('hex')}`;
    const time = new Date(at);
    const told: Told = { reason, name, sentence, count: 1, at, first: time, last: time, written: Promise.resolve() };
    this.#told.set(key, told);
    told.written = this.#write(pod, told);
  }

  /** The last repetition is written too, later: nobody may come after it. */
  #repeat(pod: EventTarget, told: Told, sentence: string): void {
    told.count++;
    told.sentence = sentence;
    told.last = new Date();
    this.#writeLater(pod, told);
  }

  #writeLater(pod: EventTarget, told: Told): void {
    told.again ??= setTimeout(
      () => {
        delete told.again;
        told.at = Date.now();
        told.written = told.written.then(() => this.#write(pod, told));
      },
      told.at + this.#againMs - Date.now(),
    ).unref();
  }

  /** What is not taken is not tried again before it is time: an API server that refuses is asked no more often than one that does not. */
  async #write(pod: EventTarget, told: Told): Promise<void> {
    try {
      await this.#put(pod, told);
      delete told.failing;
    } catch (error) {
      if (told.failing === undefined) this.#noteFailure(pod, error);
      told.failing ??= Date.now();
      if (mayBeTakenLater(error) && Date.now() - told.failing < FORGET_MS) this.#writeLater(pod, told);
    }
  }

  /** For events the API server makes what it does not have, or not any more, and whether it took one that it did not answer does not matter. */
  #put({ namespace, name: podName, uid }: EventTarget, { reason, name, sentence, count, first, last }: Told): Promise<unknown> {
    const body: CoreV1Event = {
      metadata: { name, namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name: podName, uid },
      ...{ type: 'Warning', reason, message: sentence.slice(0, LONGEST_MESSAGE) },
      source: { component: 'nvidia-virtual', host: this.#node },
      ...{ count, firstTimestamp: first, lastTimestamp: last },
    };
    return this.#api.request({ method: 'PUT', path: `/api/v1/namespaces/${namespace}/events/${name}`, body });
  }

  #noteFailure({ namespace, name }: EventTarget, error: unknown): void {
    const reason = (error as Error).message.split('\n')[0];
    this.#logger.warn({ pod: `${namespace}/${name}` }, `An event of the pod could not be written: ${reason}.`);
  }

  #forget(now: number): void {
    for (const [key, { at }] of this.#told) if (now - at > FORGET_MS) this.#told.delete(key);
  }
}

/** The API server is away, has too much to do, or has just started and does not know yet who may do what. */
function mayBeTakenLater(error: unknown): boolean {
  const status = error instanceof ApiError ? error.status : undefined;
  return status === undefined || [401, 403, 429].includes(status) || status >= 500;
}
