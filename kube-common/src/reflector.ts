import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '@kubernetes/client-node';
import { Backoff } from '@nvidia-virtual/service/backoff';
import type { Logger } from 'pino';
import { ApiError, type ApiServer, type Query } from './api-server.js';

/** Who is told what there is. */
export interface Reflection<T> {
  /**
   * All that there is; what is not in it is gone. `since`: when the list was asked for, by
   * performance.now().
   */
  replace(objects: readonly T[], since: number): void;
  put(object: T): void;
  remove(object: T): void;
}

interface ReflectorOptions<Raw, T> {
  readonly api: ApiServer;
  /** For example `/api/v1/pods`. */
  readonly path: string;
  readonly query?: Query;
  /**
   * What is kept of an object; called at once, so that a long list is never held as a whole. One
   * for which it throws is left out.
   */
  readonly read: (object: Raw) => T;
  readonly reflection: Reflection<T>;
  readonly logger: Logger;
}

interface ListAnswer<Raw> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly Raw[];
}

interface WatchEvent<Raw> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: Raw & {
    readonly metadata?: { readonly resourceVersion?: string };
    readonly code?: number;
    readonly message?: string;
  };
}

const PAGE = 500;
const GONE = 410;
const BACKOFF = { first: 500, longest: 30_000, jitter: true };

/**
 * Follows a list of objects of the API server: listed in pages, then watched, listed anew when the
 * watch is too old.
 */
export class Reflector<Raw, T> {
  readonly #options: ReflectorOptions<Raw, T>;
  readonly #end = new AbortController();
  #version: string | undefined;
  readonly #backoff = new Backoff(BACKOFF);
  #failed = false;
  #synced = false;
  #problem: string | undefined;

  constructor(options: ReflectorOptions<Raw, T>) {
    this.#options = options;
  }

  /**
   * Undefined once everything was told; it stays so while the API server is away, when what was
   * told last counts.
   */
  readonly condition = (): string | undefined =>
    this.#synced
      ? undefined
      : `${this.#options.path} was not listed yet${this.#problem === undefined ? '.' : `: ${this.#problem}`}`;

  /** Undefined while it is followed; else why what was told may be old. */
  readonly lag = (): string | undefined => this.#problem;

  /** Runs until stop(). */
  async run(): Promise<void> {
    while (!this.#end.signal.aborted) {
      try {
        if (this.#version === undefined) await this.#list();
        await this.#watch();
      } catch (error) {
        await this.#pause(error as Error);
      }
    }
  }

  stop(): void {
    this.#end.abort();
  }

  async #list(): Promise<void> {
    const { api, path, query, reflection } = this.#options;
    const since = performance.now();
    const objects: T[] = [];
    let next: string | undefined;
    let version: string | undefined;
    do {
      const answer: ListAnswer<Raw> = await api.request({
        path,
        query: { ...query, limit: PAGE, continue: next },
        timeout: 60_000,
      });
      for (const item of answer.items ?? []) this.#read(item, (object) => objects.push(object));
      next = answer.metadata?.continue || undefined;
      version = answer.metadata?.resourceVersion;
    } while (next !== undefined && !this.#end.signal.aborted);
    reflection.replace(objects, since);
    this.#version = version;
    this.#recovered();
  }

  async #watch(): Promise<void> {
    const { api, path, query } = this.#options;
    // Spread, so that not all that is watched ends at the same time.
    const timeoutSeconds = 240 + Math.floor(Math.random() * 240);
    const signal = AbortSignal.any([
      this.#end.signal,
      AbortSignal.timeout((timeoutSeconds + 30) * 1000),
    ]);
    const watch = {
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion: this.#version,
      timeoutSeconds,
    };
    const response = await api.stream({ path, query: { ...query, ...watch } }, signal);
    this.#recovered();
    for await (const line of linesOf(response, path))
      if (line !== '') this.#apply(JSON.parse(line) as WatchEvent<Raw>);
  }

  #apply({ type, object }: WatchEvent<Raw>): void {
    const { reflection } = this.#options;
    if (type === 'ERROR') throw new ApiError(object.message ?? 'the watch failed', object.code);
    this.#version = object.metadata?.resourceVersion ?? this.#version;
    if (type === 'ADDED' || type === 'MODIFIED') this.#read(object, (one) => reflection.put(one));
    else if (type === 'DELETED') this.#read(object, (one) => reflection.remove(one));
  }

  /** Whoever makes an object that nobody foresaw must not stop all others from being seen. */
  #read(object: Raw, take: (object: T) => void): void {
    const { read, path, logger } = this.#options;
    let one: T;
    try {
      one = read(object);
    } catch (error) {
      const { namespace, name } = (object as KubernetesObject).metadata ?? {};
      logger.error(
        { namespace, name, err: error },
        `an object of ${path} cannot be read and is left out`,
      );
      return;
    }
    take(one);
  }

  #recovered(): void {
    this.#synced = true;
    this.#failed = false;
    this.#backoff.reset();
    this.#problem = undefined;
  }

  async #pause(error: Error): Promise<void> {
    if (this.#end.signal.aborted) return;
    // Too old to go on from: listing anew is no failure.
    if (error instanceof ApiError && error.status === GONE) {
      this.#version = undefined;
      return;
    }
    this.#problem = error.message;
    if (this.#failed || !(error instanceof ApiError)) this.#version = undefined;
    this.#failed = true;
    this.#options.logger.warn(
      { reason: error.message },
      `the watch of ${this.#options.path} failed and is retried`,
    );
    await sleep(this.#backoff.next(), undefined, { signal: this.#end.signal }).catch(() => {});
  }
}

/**
 * @throws ApiError when it breaks off, as with the API server's end: what it told holds, and it can
 * be gone on from.
 */
async function* linesOf(watch: Readable, path: string): AsyncGenerator<string> {
  try {
    yield* createInterface(watch);
  } catch (error) {
    throw new ApiError(`The watch of ${path} ended: ${(error as Error).message}.`, undefined);
  }
}
