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
  /** As the API server has it; undefined: it does not, since it did not take it, or it may have expired. */
  event: CoreV1Event | undefined;
  /** The latest one. */
  sentence: string;
  count: number;
  /** It will be written again. */
  again?: NodeJS.Timeout;
  /** Resolves once that is over, well or not. */
  written: Promise<void>;
  /** When it was written last, or should have been; in milliseconds. */
  at: number;
  readonly first: Date;
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
    return [...this.#told].filter(([key, { at }]) => key.startsWith(`${uid} `) && now - at < this.#againMs).length;
  }

  #tell(pod: EventTarget, reason: EventReason, sentence: string, key: string, at: number): void {
    const told: Told = { reason, event: undefined, sentence, count: 1, at, first: new Date(at), written: Promise.resolve() };
    this.#told.set(key, told);
    told.written = this.#write(pod, told);
  }

  /** The last repetition is written too, later: nobody may come after it. */
  #repeat(pod: EventTarget, told: Told, sentence: string): void {
    told.count++;
    told.sentence = sentence;
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
      told.event = await (told.event ? this.#replace(pod, told, told.event) : this.#create(pod, told));
    } catch (error) {
      const mayBeTaken = isAway(error) || told.event !== undefined;
      told.event = undefined;
      this.#noteLost(pod, error);
      if (mayBeTaken && Date.now() - told.first.getTime() < FORGET_MS) this.#writeLater(pod, told);
    }
  }

  #create({ namespace, name, uid }: EventTarget, { reason, sentence, count, at, first }: Told): Promise<CoreV1Event> {
    const body: CoreV1Event = {
      metadata: { generateName: `${name.slice(0, 200)}.gpu-`, namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
      ...{ type: 'Warning', reason, message: sentence.slice(0, LONGEST_MESSAGE) },
      source: { component: 'nvidia-virtual', host: this.#node },
      ...{ count, firstTimestamp: first, lastTimestamp: new Date(at) },
    };
    return this.#api.request({ method: 'POST', path: `/api/v1/namespaces/${namespace}/events`, body });
  }

  #replace(pod: EventTarget, { sentence, count, at }: Told, event: CoreV1Event): Promise<CoreV1Event> {
    const { namespace = pod.namespace, name = '' } = event.metadata;
    const body = { ...event, message: sentence.slice(0, LONGEST_MESSAGE), count, lastTimestamp: new Date(at) };
    return this.#api.request({ method: 'PUT', path: `/api/v1/namespaces/${namespace}/events/${name}`, body });
  }

  #noteLost({ namespace, name }: EventTarget, error: unknown): void {
    const reason = (error as Error).message.split('\n')[0];
    this.#logger.warn({ pod: `${namespace}/${name}` }, `An event of the pod could not be written: ${reason}.`);
  }

  #forget(now: number): void {
    for (const [key, { at }] of this.#told) if (now - at > FORGET_MS) this.#told.delete(key);
  }
}

/** Or overloaded: what is wrong is not the event. */
function isAway(error: unknown): boolean {
  const status = error instanceof ApiError ? error.status : undefined;
  return status === undefined || status === 429 || status >= 500;
}
