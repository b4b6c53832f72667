import { EventEmitter } from 'node:events';
import { CoreV1Api, type KubeConfig, ListWatch, type V1Pod, type V1PodList, Watch } from '@kubernetes/client-node';
import type { Logger } from 'pino';
import { findPod } from './pod-identity.js';

const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 10_000;

interface PodEvents {
  /** A pod came, went or became another. */
  changed: [];
}

/** The pods of this node as the API server knows them. While it is away, what it said last holds. */
export class NodePods extends EventEmitter<PodEvents> {
  readonly #ask: (most?: number) => Promise<V1PodList>;
  readonly #node: string;
  readonly #logger: Logger;
  readonly #list: ListWatch<V1Pod>;
  #trouble: string | undefined;
  #retry = FIRST_RETRY_MS;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(config: KubeConfig, node: string, logger: Logger) {
    super();
    this.#node = node;
    this.#logger = logger;
    const api = config.makeApiClient(CoreV1Api);
    const fieldSelector = `spec.nodeName=${node}`;
    this.#ask = (limit) => api.listPodForAllNamespaces({ fieldSelector, ...(limit !== undefined && { limit }) });
    const list = async () => {
      const pods = await this.#ask();
      if (this.#ended) throw new Error('nobody wants to know any more');
      this.#noteReached();
      return pods;
    };
    this.#list = new ListWatch('/api/v1/pods', new Watch(config), list, false, undefined, fieldSelector);
    for (const verb of ['add', 'update', 'delete'] as const) this.#list.on(verb, () => this.emit('changed'));
    this.#list.on('error', (error: unknown) => this.#noteError(error));
    this.setMaxListeners(0);
  }

  start(): void {
    void this.#watch();
  }

  stop(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    void this.#list.stop();
  }

  /** All pods were listed at least once: what is not here is nowhere. */
  get synced(): boolean {
    return this.#list.latestResourceVersion() !== '';
  }

  /** Why what is here may be old: a sentence; undefined: it is not. */
  get trouble(): string | undefined {
    if (this.#trouble !== undefined) return this.#trouble;
    return this.synced ? undefined : 'The API server was not reached yet.';
  }

  get all(): readonly V1Pod[] {
    return this.#list.list();
  }

  /** @param uid as the kubelet has it. */
  find(uid: string): V1Pod | undefined {
    return findPod(this.all, uid, this.#node);
  }

  /** A stop is not heard while a watch is being opened: it would go on, and keep the process alive. */
  async #watch(): Promise<void> {
    await this.#list.start();
    if (this.#ended) await this.#list.stop();
  }

  #noteReached(): void {
    if (this.#trouble !== undefined) this.#logger.info('the API server is there again');
    this.#trouble = undefined;
    this.#retry = FIRST_RETRY_MS;
  }

  #noteError(error: unknown): void {
    if (this.#ended) return;
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    if (this.#trouble === undefined) this.#logger.warn(`The API server is away: ${reason}. Running pods go on; it is asked again.`);
    this.#trouble = `The API server is away: ${reason}.`;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#again(), this.#retry).unref();
    this.#retry = Math.min(LONGEST_RETRY_MS, this.#retry * 2);
  }

  /** A watch that goes on from where it was says nothing until something changes, so that it is asked first whether anybody is there. */
  async #again(): Promise<void> {
    try {
      await this.#ask(1);
      this.#noteReached();
      await this.#watch();
    } catch (error) {
      this.#noteError(error);
    }
  }
}

/** It has run to its end: the kubelet starts none of its containers any more, and its slots are free. */
export function isOver({ status }: V1Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
