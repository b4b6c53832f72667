import { isDeepStrictEqual } from 'node:util';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import type { Inventory } from '@nvidia-virtual/kube-common/assignment';
import { Backoff } from '@nvidia-virtual/service/backoff';
import type { Logger } from 'pino';
import { PluginError } from './errors.js';
import { NodeObject, type NodeTrouble } from './node-object.js';

/** Interval of checks: the annotation may be removed, or the node recreated. */
const CHECK_MS = 60_000;
/** Interval of repeated Events. The API server keeps an Event for an hour. */
const REPEAT_MS = 1800_000;
const BACKOFF = { first: 1000, longest: 30_000 };

interface NodeReporterOptions {
  readonly node: string;
  readonly kubeconfig: string | undefined;
  readonly logger: Logger;
}

/**
 * Reports the node to the API server: the inventory and the current problems as annotations, lost
 * GPUs as a condition, problems as Events. Runs in the background: while the API server is
 * unavailable it retries, and then writes the current state.
 */
export class NodeReporter {
  readonly #options: NodeReporterOptions;
  #api: ApiServer | undefined;
  #object: NodeObject | undefined;
  #inventory: Inventory | undefined;
  #lost: readonly string[] = [];
  #troubles: readonly NodeTrouble[] = [];
  readonly #said = new Map<string, { readonly count: number; readonly at: number }>();
  #timer: NodeJS.Timeout | undefined;
  #busy = false;
  /** Something changed since the current report began. */
  #changed = false;
  #ended = false;
  readonly #backoff = new Backoff(BACKOFF);
  #failure: string | undefined;

  constructor(options: NodeReporterOptions) {
    this.#options = options;
  }

  /** The reason why the last report failed; undefined: it succeeded. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** @param lost a sentence for each GPU that cannot be used */
  report(inventory: Inventory, lost: readonly string[], troubles: readonly NodeTrouble[]): void {
    const former = [this.#inventory, this.#lost, this.#troubles];
    if (isDeepStrictEqual([inventory, lost, troubles], former)) return;
    this.#inventory = inventory;
    this.#lost = lost;
    this.#troubles = troubles;
    // A problem that ended and recurs is reported again at once.
    for (const [message, { count }] of this.#said)
      if (!troubles.some((trouble) => trouble.message === message))
        this.#said.set(message, { count, at: Number.NEGATIVE_INFINITY });
    this.#changed = true;
    if (!this.#busy) this.#soon(0);
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
    this.#busy = true;
    this.#changed = false;
    try {
      await this.#tellAll();
      this.#failure = undefined;
      this.#backoff.reset();
      this.#soon(this.#changed ? 0 : CHECK_MS);
    } catch (error) {
      this.#fail(error as Error);
      this.#soon(this.#backoff.next());
    } finally {
      this.#busy = false;
    }
  }

  async #tellAll(): Promise<void> {
    const { node, logger } = this.#options;
    this.#object ??= await this.#reach();
    for (const trouble of this.#troubles) await this.#warn(this.#object, trouble);
    if (this.#inventory && (await this.#object.annotate(this.#inventory, this.#troubles)))
      logger.info(
        { node, gpus: this.#inventory.gpus.length, problems: this.#troubles.length },
        'inventory and problems of the node were written to its annotations',
      );
    if (this.#inventory) await this.#object.setCondition(this.#lost);
  }

  /** Loads the Kubernetes client on demand, because it is large. */
  async #reach(): Promise<NodeObject> {
    const { ApiServer } = await import('@nvidia-virtual/kube-common/api-server');
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
    if (message !== this.#failure)
      logger.warn(new PluginError('API_NOT_REACHED', { node, reason: message }).message);
    this.#failure = message;
  }
}
