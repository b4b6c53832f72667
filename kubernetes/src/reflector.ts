import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient } from './api-client.js';
import { ApiError } from './api-client.js';
import { linesOf } from './lines.js';

/** What every object of Kubernetes has, as far as it matters here. */
export interface KubernetesObject {
  readonly metadata?: { readonly name?: string; readonly namespace?: string; readonly resourceVersion?: string };
}

export interface ReflectorOptions<Raw extends KubernetesObject, Kept> {
  readonly client: ApiClient;
  /** `/api/v1/pods` */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** What is remembered of an object; undefined: nothing. Of large clusters only a part is of interest, and only a part of that. */
  keep(object: Raw): Kept | undefined;
}

interface ReflectorEvents {
  /** After each change, and once all is there. */
  changed: [];
  /** The API server cannot be asked; what was read stays. It is tried again. */
  trouble: [error: Error];
  /** The end of trouble. */
  settled: [];
}

interface Page<Raw> {
  readonly metadata?: { readonly continue?: string; readonly resourceVersion?: string };
  readonly items: Raw[];
}

interface Event<Raw> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: Raw & { readonly code?: number; readonly message?: string };
}

const PAGE = 500;
const WATCH_SECONDS = 300;
/** The server ends a watch in time; what still is silent after this has lost its other end. */
const WATCH_DEADLINE = (WATCH_SECONDS + 30) * 1000;
const LEAST_PAUSE = 250;
const MOST_PAUSE = 15_000;

/** A copy of what the API server holds of one kind, kept current: a list, then watches from where it ended. */
export class Reflector<Raw extends KubernetesObject, Kept> extends EventEmitter<ReflectorEvents> {
  readonly #options: ReflectorOptions<Raw, Kept>;
  readonly #ended = new AbortController();
  #items = new Map<string, Kept>();
  #synced = false;
  #trouble: Error | undefined;

  constructor(options: ReflectorOptions<Raw, Kept>) {
    super();
    this.#options = options;
  }

  /** By `NAMESPACE/NAME`, or `NAME` where there are no namespaces. */
  get items(): ReadonlyMap<string, Kept> {
    return this.#items;
  }

  /** True once everything was read. */
  get synced(): boolean {
    return this.#synced;
  }

  get trouble(): Error | undefined {
    return this.#trouble;
  }

  start(): void {
    void this.#run();
  }

  close(): void {
    this.#ended.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    let pause = LEAST_PAUSE;
    let version: string | undefined;
    while (!signal.aborted) {
      try {
        version ??= await this.#list();
        this.#settle();
        version = await this.#watch(version);
        pause = LEAST_PAUSE;
      } catch (error) {
        if (signal.aborted) return;
        version = undefined;
        // 410: what we knew is too old to be continued. That is no trouble.
        if (!(error instanceof ApiError && error.code === 410)) this.#enter(error as Error);
        await delay(pause, undefined, { signal }).catch(() => undefined);
        pause = Math.min(pause * 2, MOST_PAUSE);
      }
    }
  }

  async #list(): Promise<string> {
    const items = new Map<string, Kept>();
    let version = '';
    let rest: string | undefined;
    do {
      const page: Page<Raw> = await this.#options.client.json(
        this.#address({ limit: String(PAGE), ...(rest === undefined ? {} : { continue: rest }) }),
        { signal: this.#ended.signal },
      );
      for (const object of page.items) this.#put(items, object);
      rest = page.metadata?.continue || undefined;
      version = page.metadata?.resourceVersion ?? '';
    } while (rest !== undefined);
    this.#items = items;
    this.#synced = true;
    this.emit('changed');
    return version;
  }

  /** Until the server ends it; then it goes on from the version that is returned. */
  async #watch(from: string): Promise<string> {
    let version = from;
    const query = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion: from, timeoutSeconds: String(WATCH_SECONDS) };
    const signal = AbortSignal.any([this.#ended.signal, AbortSignal.timeout(WATCH_DEADLINE)]);
    const stream = await this.#options.client.open(this.#address(query), { signal });
    for await (const line of linesOf(stream)) {
      const { type, object } = JSON.parse(line) as Event<Raw>;
      if (type === 'ERROR') throw new ApiError(object.code ?? 500, object, this.#options.path);
      version = object.metadata?.resourceVersion ?? version;
      if (type === 'BOOKMARK') continue;
      if (type === 'DELETED') this.#items.delete(keyOf(object));
      else this.#put(this.#items, object);
      this.emit('changed');
    }
    return version;
  }

  #put(items: Map<string, Kept>, object: Raw): void {
    const kept = this.#options.keep(object);
    if (kept === undefined) items.delete(keyOf(object));
    else items.set(keyOf(object), kept);
  }

  #address(query: Record<string, string>): string {
    return `${this.#options.path}?${new URLSearchParams({ ...this.#options.query, ...query })}`;
  }

  #enter(error: Error): void {
    const news = this.#trouble?.message !== error.message;
    this.#trouble = error;
    if (news) this.emit('trouble', error);
  }

  #settle(): void {
    if (this.#trouble) this.emit('settled');
    this.#trouble = undefined;
  }
}

function keyOf({ metadata }: KubernetesObject): string {
  return metadata?.namespace === undefined ? (metadata?.name ?? '') : `${metadata.namespace}/${metadata.name}`;
}
