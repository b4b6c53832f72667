import { createHash, randomBytes } from 'node:crypto';
import type { CoreV1Event } from '@kubernetes/client-node';
import { ApiError, type ApiServer } from '@nvidia-virtual/kube-common/api-server';
import type { Logger } from 'pino';

/** Reasons of Events. Stable, because users filter by them. */
export type EventReason =
  | 'GpuNotAvailable'
  | 'GpuRequestWrong'
  | 'GpuAccessRefused'
  | 'GpuImageUnsuitable'
  | 'GpuVersionUnknown'
  | 'GpuMemoryQuotaReached'
  | 'GpuMemoryBeyondQuota'
  | 'GpuLimitReached'
  | 'GpuWorkerDied'
  | 'GpuXid'
  | 'GpuSuspended'
  | 'GpuResumed'
  | 'GpuNotSuspended'
  | 'GpuNotResumed'
  | 'GpuMoved'
  | 'GpuNotMoved';

interface EventTarget {
  /** @default Pod */
  readonly kind?: 'Node';
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

interface Told {
  readonly type: 'Normal' | 'Warning';
  readonly reason: EventReason;
  /** Name of the Event object. */
  readonly name: string;
  readonly first: Date;
  /** Latest message. */
  sentence: string;
  last: Date;
  count: number;
  /** Timer of the next write. */
  again?: NodeJS.Timeout;
  /** Called after each successful write. */
  done?: (() => void) | undefined;
  /** Resolves after the latest write, successful or not. */
  written: Promise<void>;
  /** Time of the latest attempt in milliseconds. */
  at: number;
  /** Time of the first of the failing attempts in milliseconds. */
  failing?: number;
}

type Content = Pick<Told, 'type' | 'reason' | 'sentence' | 'done'>;

/** Rate limit on writes of the same Event. */
const AGAIN_MS = 60_000;
/** Limit on different Events of a target within that time. Further ones are dropped. */
const MOST_OF_A_TARGET = 10;
const FORGET_MS = 60 * 60_000;
const LONGEST_MESSAGE = 1024;

/**
 * Tells a pod's user of errors, suspensions and moves by Events of the pod, and of Xids by Events
 * of the node. While the API server is unavailable, writes are retried for an hour.
 */
export class PodEvents {
  readonly #api: ApiServer;
  readonly #node: string;
  readonly #logger: Logger;
  readonly #againMs: number;
  readonly #told = new Map<string, Told>();
  /** By the UID of a target that has the most Events: the time until then, in milliseconds. */
  readonly #full = new Map<string, number>();

  constructor(api: ApiServer, node: string, logger: Logger, againMs = AGAIN_MS) {
    this.#api = api;
    this.#node = node;
    this.#logger = logger;
    this.#againMs = againMs;
  }

  /**
   * @param subject deduplication key: a new sentence with the same subject replaces the former one
   * and increments the count.
   */
  warn(pod: EventTarget, reason: EventReason, sentence: string, subject = sentence): void {
    this.#add(pod, { type: 'Warning', reason, sentence }, subject);
  }

  /**
   * For what is no error. The next gpu-proxy may repeat it: that updates the same Event.
   * @param done is called when it is written
   */
  note(pod: EventTarget, reason: EventReason, sentence: string, done?: () => void): void {
    this.#add(pod, { type: 'Normal', reason, sentence, done }, sentence);
  }

  #add(pod: EventTarget, content: Content, subject: string): void {
    const { reason, sentence } = content;
    const now = Date.now();
    const key = `${pod.uid} ${reason} ${subject}`;
    const told = this.#told.get(key);
    if (told && now - told.at <= FORGET_MS) this.#repeat(pod, told, sentence);
    else if (now >= (this.#full.get(pod.uid) ?? 0) && this.#hasRoom(pod, now))
      this.#tell(pod, content, key, now);
  }

  /** Takes a while with thousands of Events, so a target without room is not examined again. */
  #hasRoom({ uid }: EventTarget, now: number): boolean {
    this.#forget(now);
    const ends = [...this.#told]
      .filter(([key]) => key.startsWith(`${uid} `))
      .map(([, { last }]) => last.getTime() + this.#againMs)
      .filter((end) => end > now);
    if (ends.length < MOST_OF_A_TARGET) return true;
    this.#full.set(uid, Math.min(...ends));
    return false;
  }

  #tell(pod: EventTarget, content: Content, key: string, at: number): void {
    const isRepeatable = content.type === 'Normal';
    const bytes = isRepeatable ? createHash('sha256').update(key).digest() : randomBytes(8);
    const name = `${pod.name.slice(0, 200)}.gpu-${bytes.toString('hex', 0, 8)}`;
    const time = new Date(at);
    const told: Told = {
      ...content,
      name,
      count: 1,
      at,
      first: time,
      last: time,
      written: Promise.resolve(),
    };
    this.#told.set(key, told);
    told.written = this.#write(pod, told);
  }

  /** Debounced, and always written: no further repetition may follow. */
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

  /**
   * Failed writes are retried at the interval of regular writes, so errors do not increase the load
   * of the API server.
   */
  async #write(pod: EventTarget, told: Told): Promise<void> {
    try {
      await this.#put(pod, told);
      delete told.failing;
      told.done?.();
    } catch (error) {
      if (told.failing === undefined) this.#noteFailure(pod, error);
      told.failing ??= Date.now();
      if (mayBeTakenLater(error) && Date.now() - told.failing < FORGET_MS)
        this.#writeLater(pod, told);
    }
  }

  /**
   * PUT creates or updates an Event, so retries are idempotent.
   */
  #put(
    { kind, namespace, name: target, uid }: EventTarget,
    { type, reason, name, sentence, count, first, last }: Told,
  ): Promise<unknown> {
    const body: CoreV1Event = {
      metadata: { name, namespace },
      involvedObject: {
        ...{ apiVersion: 'v1', kind: kind ?? 'Pod', name: target, uid },
        ...(kind === undefined && { namespace }),
      },
      ...{ type, reason, message: sentence.slice(0, LONGEST_MESSAGE) },
      source: { component: 'nvidia-virtual', host: this.#node },
      ...{ count, firstTimestamp: first, lastTimestamp: last },
    };
    return this.#api.request({
      method: 'PUT',
      path: `/api/v1/namespaces/${namespace}/events/${name}`,
      body,
    });
  }

  #noteFailure({ namespace, name }: EventTarget, error: unknown): void {
    const reason = (error as Error).message.split('\n')[0];
    this.#logger.warn(
      { pod: `${namespace}/${name}` },
      `An event of the pod could not be written: ${reason}.`,
    );
  }

  #forget(now: number): void {
    for (const [key, { at }] of this.#told) if (now - at > FORGET_MS) this.#told.delete(key);
    for (const [uid, until] of this.#full) if (now >= until) this.#full.delete(uid);
  }
}

/**
 * Whether a retry can succeed: the API server is unavailable, overloaded, or has just started and
 * does not know the permissions yet.
 */
function mayBeTakenLater(error: unknown): boolean {
  const status = error instanceof ApiError ? error.status : undefined;
  return status === undefined || [401, 403, 429].includes(status) || status >= 500;
}
