import { rmSync } from 'node:fs';
import path from 'node:path';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { Backoff } from '@nvidia-virtual/service/backoff';
import { namesIn } from '@nvidia-virtual/service/files';
import { whyNotServed } from '@nvidia-virtual/service/socket';
import type { Logger } from 'pino';
import type { Claim } from './claim.js';
import { DirectoryWatch } from './directory-watch.js';
import { ENDPOINT_NAME, Endpoint, type EndpointOptions } from './endpoint.js';
import { PluginError } from './errors.js';
import { kubeletStart, register } from './registration.js';

/** Polling interval, because the watch on the directory can miss events. */
const LOOK_MS = 1000;
/**
 * Delay before a new registration. The kubelet takes a moment to forget a plugin that it stopped
 * watching, and would forget the new registration with it.
 */
const FORGETTING_MS = 250;
/** After a registration the kubelet requests the list at once. If not, it could not connect. */
const UNWATCHED_MS = 3000;
const BACKOFF = { first: 100, longest: 2000 };

interface KubeletLinkOptions extends Omit<EndpointOptions, 'watched'> {
  readonly claim: Claim;
  readonly logger: Logger;
  registered(): void;
}

/**
 * Keeps the node's slots registered across restarts of the kubelet. A restarting kubelet removes
 * our socket and recreates its own, in any order, or only stops watching.
 */
export class KubeletLink {
  readonly #options: KubeletLinkOptions;
  readonly #watch: DirectoryWatch;
  #endpoint: Endpoint | undefined;
  /** The start of the kubelet that knows the endpoint. */
  #known: string | undefined;
  #registeredAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  #again = false;
  #ended = false;
  readonly #backoff = new Backoff(BACKOFF);
  #trouble: string | undefined;

  constructor(options: KubeletLinkOptions) {
    this.#options = options;
    this.#watch = new DirectoryWatch(options.directory, () => this.#look());
  }

  async start(): Promise<void> {
    await removeStaleEndpoints(this.#options.directory);
    this.#look();
  }

  /** Whether the kubelet watches the list. */
  get watched(): boolean {
    return this.#endpoint?.watched ?? false;
  }

  /** The reason why the kubelet does not watch; undefined: it does. */
  get trouble(): string | undefined {
    return this.watched
      ? undefined
      : (this.#trouble ?? `The kubelet has not yet asked for ${RESOURCE}.`);
  }

  /** Withdraws the slots: the kubelet assigns none from now on. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#watch.end();
    this.#closeEndpoint();
  }

  /** Checks the registration. Calls during a check cause another one after it. */
  #look(): void {
    if (this.#looking || this.#ended) {
      this.#again = true;
      return;
    }
    this.#looking = true;
    clearTimeout(this.#timer);
    void this.#settle().then((wait) => {
      this.#looking = false;
      if (this.#ended) return;
      this.#timer = setTimeout(() => this.#look(), this.#again ? 0 : wait);
      this.#again = false;
    });
  }

  /** @returns milliseconds until the next check */
  async #settle(): Promise<number> {
    try {
      await this.#registerWhereNeeded();
      this.#backoff.reset();
      this.#trouble = undefined;
      return LOOK_MS;
    } catch (error) {
      this.#tell((error as Error).message);
      return this.#backoff.next();
    }
  }

  /** @throws PluginError */
  async #registerWhereNeeded(): Promise<void> {
    const { directory, logger, claim } = this.#options;
    if (!this.#watch.renew()) throw new PluginError('KUBELET_DIRECTORY_MISSING', { directory });
    // The order matters: see register().
    const start = kubeletStart(directory);
    if (this.#endpoint && !this.#endpoint.there) this.#closeEndpoint();
    if (start === undefined || (this.#endpoint && this.#known === start && !this.#forgotten))
      return;
    if (claim.superseded) throw new PluginError('SUPERSEDED', { resource: RESOURCE });
    this.#endpoint ??= await Endpoint.open({
      ...this.#options,
      watched: (now) => this.#noteWatched(now),
    });
    if (this.#ended) return this.#closeEndpoint();
    await register(directory, this.#endpoint);
    this.#known = start;
    this.#registeredAt = performance.now();
    this.#options.registered();
    logger.info(
      {
        resource: RESOURCE,
        endpoint: this.#endpoint.name,
        slots: this.#options.slots.devices.length,
      },
      'registered',
    );
  }

  get #forgotten(): boolean {
    return !this.watched && performance.now() - this.#registeredAt > UNWATCHED_MS;
  }

  /**
   * If the kubelet stops watching, it restarts, or it dropped this registration together with that
   * of the previous plugin.
   */
  #noteWatched(now: boolean): void {
    if (now || this.#ended) return;
    const lost = performance.now();
    setTimeout(() => {
      if (!this.watched && this.#registeredAt < lost) this.#known = undefined;
      this.#look();
    }, FORGETTING_MS);
  }

  #closeEndpoint(): void {
    this.#endpoint?.close();
    this.#endpoint = undefined;
    this.#known = undefined;
  }

  /** Logs a problem once until it changes. */
  #tell(trouble: string): void {
    if (trouble !== this.#trouble) this.#options.logger.warn(trouble);
    this.#trouble = trouble;
  }
}

/** Removes sockets of killed plugins. */
async function removeStaleEndpoints(directory: string): Promise<void> {
  for (const name of namesIn(directory).filter((entry) => ENDPOINT_NAME.test(entry))) {
    const socket = path.join(directory, name);
    if ((await whyNotServed(socket)) !== undefined) rmSync(socket, { force: true });
  }
}
