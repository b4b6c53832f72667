import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '@kubernetes/client-node';
import { Backoff } from '@nvidia-virtual/service/backoff';
import type { Logger } from 'pino';
import { ApiError, type ApiServer, type Query } from './api-server.js';
import { pagesOf } from './list-pages.js';

/** Receives the objects and their changes. */
export interface Reflection<T> {
  /**
   * Replaces all objects.
   * @param since time of the list request, of performance.now()
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
   * Extracts the needed part of an object. It is called for each page, so that a long list is
   * never in memory as a whole. Objects for which it throws are skipped.
   */
  readonly read: (object: Raw) => T;
  readonly reflection: Reflection<T>;
  readonly logger: Logger;
}

interface WatchEvent<Raw> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: Raw & {
    readonly metadata?: { readonly resourceVersion?: string };
    readonly code?: number;
    readonly message?: string;
  };
}

const GONE = 410;
/** Milliseconds between the starts of two watches. */
const PACE_MS = 1000;
const BACKOFF = { first: 500, longest: 30_000, jitter: true };

/**
 * Keeps a list of API server objects up to date: lists them in pages, then watches them, and lists
 * them again if the version is too old to watch from.
 */
export class Reflector<Raw, T> {
  readonly #options: ReflectorOptions<Raw, T>;
  readonly #end = new AbortController();
  #version: string | undefined;
  readonly #backoff = new Backoff(BACKOFF);
  /** When the latest attempt began, by performance.now(). */
  #begun = 0;
  #failed = false;
  #synced = false;
  #problem: string | undefined;

  constructor(options: ReflectorOptions<Raw, T>) {
    this.#options = options;
  }

  /**
   * Undefined after the first complete list, also while the API server is unreachable: the last
   * known objects stay valid.
   */
  readonly condition = (): string | undefined =>
    this.#synced
      ? undefined
      : `${this.#options.path} was not listed ` +
        `yet${this.#problem === undefined ? '.' : `: ${this.#problem}`}`;

  /** Undefined while the watch works; otherwise why the objects may be stale. */
  readonly lag = (): string | undefined => this.#problem;

  /** Runs until stop(). */
  async run(): Promise<void> {
    for (; !this.#end.signal.aborted; await this.#pace()) {
      try {
        this.#begun = performance.now();
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
    let version: string | undefined;
    for await (const page of pagesOf<Raw>(api, { path, query, timeout: 60_000 })) {
      for (const item of page.items ?? []) this.#read(item, (object) => objects.push(object));
      version = page.metadata?.resourceVersion;
      if (this.#end.signal.aborted) return;
    }
    reflection.replace(objects, since);
    this.#version = version;
    this.#recovered();
  }

  async #watch(): Promise<void> {
    const { api, path, query } = this.#options;
    // Random, so that watches do not all end at the same time.
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

  /** Skips an object that cannot be read, so that it does not block the others. */
  #read(object: Raw, take: (object: T) => void): void {
    const { read, path, logger } = this.#options;
    let one: T;
    try {
      one = read(object);
    } catch (error) {
      const { namespace, name } = (object as KubernetesObject).metadata ?? {};
      logger.error({ namespace, name, err: error }, `skipped an unreadable object of ${path}`);
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

  /** Limits the rate of requests to a server that ends each watch at once. */
  async #pace(): Promise<void> {
    const milliseconds = Math.max(0, this.#begun + PACE_MS - performance.now());
    await sleep(milliseconds, undefined, { signal: this.#end.signal }).catch(() => {});
  }

  async #pause(error: Error): Promise<void> {
    if (this.#end.signal.aborted) return;
    // The version is too old: list again without backoff.
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
 * @throws ApiError if the connection breaks. Received events stay valid, and a new watch can
 * continue after them.
 */
async function* linesOf(watch: Readable, path: string): AsyncGenerator<string> {
  try {
    yield* createInterface(watch);
  } catch (error) {
    throw new ApiError(`The watch of ${path} ended: ${(error as Error).message}.`, undefined);
  }
}
