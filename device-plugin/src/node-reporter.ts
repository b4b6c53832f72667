import { isDeepStrictEqual } from 'node:util';
import type { ApiServer } from '@nvidia-virtual/kubernetes/api-server';
import type { Inventory } from '@nvidia-virtual/kubernetes/assignment';
import type { Logger } from 'pino';
import { PluginError } from './errors.js';
import { NodeObject, type NodeTrouble } from './node-object.js';

/** Somebody may have taken the annotation away, or made the node anew. */
const CHECK_MS = 60_000;
/** An event is kept for an hour. */
const REPEAT_MS = 1800_000;
const LEAST_RETRY_MS = 500;
const MOST_RETRY_MS = 30_000;

export interface NodeReporterOptions {
  readonly node: string;
  readonly kubeconfig: string | undefined;
  readonly logger: Logger;
}

/**
 * Tells the API server what is true of the node: its inventory, in an annotation, and what is wrong, in events. Nobody waits for it: while the API
 * server is away it tries again, and then tells what is true by then.
 */
export class NodeReporter {
  readonly #options: NodeReporterOptions;
  #api: ApiServer | undefined;
  #object: NodeObject | undefined;
  #inventory: Inventory | undefined;
  #troubles: readonly NodeTrouble[] = [];
  readonly #said = new Map<string, { readonly count: number; readonly at: number }>();
  #timer: NodeJS.Timeout | undefined;
  #busy = false;
  #ended = false;
  #retry = LEAST_RETRY_MS;
  #failure: string | undefined;

  constructor(options: NodeReporterOptions) {
    this.#options = options;
  }

  /** Why the API server does not know; undefined when it does. */
  get failure(): string | undefined {
    return this.#failure;
  }

  report(inventory: Inventory, troubles: readonly NodeTrouble[]): void {
    if (isDeepStrictEqual([inventory, troubles], [this.#inventory, this.#troubles])) return;
    this.#inventory = inventory;
    this.#troubles = troubles;
    // What was over and begins anew is said anew.
    for (const [message, { count }] of this.#said)
      if (!troubles.some((trouble) => trouble.message === message)) this.#said.set(message, { count, at: Number.NEGATIVE_INFINITY });
    this.#soon(0);
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#api?.close();
  }

  #soon(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (!this.#ended) this.#timer = setTimeout(() => void this.#tell(), milliseconds);
  }

  async #tell(): Promise<void> {
    if (this.#busy) return this.#soon(LEAST_RETRY_MS);
    this.#busy = true;
    try {
      await this.#tellAll();
      this.#failure = undefined;
      this.#retry = LEAST_RETRY_MS;
      this.#soon(CHECK_MS);
    } catch (error) {
      this.#fail(error as Error);
      this.#retry = Math.min(2 * this.#retry, MOST_RETRY_MS);
      this.#soon(this.#retry);
    } finally {
      this.#busy = false;
    }
  }

  async #tellAll(): Promise<void> {
    const { node, logger } = this.#options;
    this.#object ??= await this.#reach();
    for (const trouble of this.#troubles) await this.#warn(this.#object, trouble);
    if (this.#inventory && (await this.#object.annotate(this.#inventory)))
      logger.info({ node, gpus: this.#inventory.gpus.length }, 'the inventory of the node was written to its annotation');
  }

  /** Loaded now, when the kubelet knows the slots: the client is large. */
  async #reach(): Promise<NodeObject> {
    const { ApiServer } = await import('@nvidia-virtual/kubernetes/api-server');
    this.#api = ApiServer.load(this.#options.kubeconfig);
    return new NodeObject(this.#api, this.#options.node);
  }

  async #warn(object: NodeObject, trouble: NodeTrouble): Promise<void> {
    const said = this.#said.get(trouble.message);
    if (said && performance.now() - said.at < REPEAT_MS) return;
    const count = (said?.count ?? 0) + 1;
    await object.warn(trouble, count);
    this.#said.set(trouble.message, { count, at: performance.now() });
  }

  #fail({ message }: Error): void {
    const { node, logger } = this.#options;
    if (message !== this.#failure) logger.warn(new PluginError('API_NOT_REACHED', { node, reason: message }).message);
    this.#failure = message;
  }
}
