import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { whyNotServed } from '@nvidia-virtual/gpu-proxy/socket';
import { RESOURCE } from '@nvidia-virtual/kubernetes/names';
import type { Logger } from 'pino';
import type { Claim } from './claim.js';
import { DirectoryWatch } from './directory-watch.js';
import { ENDPOINT_NAME, Endpoint, type EndpointOptions } from './endpoint.js';
import { PluginError } from './errors.js';
import { kubeletStart, register } from './registration.js';

/** Beside the watch on the directory, which may miss something. */
const LOOK_MS = 1000;
/** The kubelet takes a moment to forget a plugin that it stopped watching, and would forget the new registration with it. */
const FORGETTING_MS = 250;
/** A kubelet that was told of an endpoint asks for the list at once, or it could not connect. */
const UNWATCHED_MS = 3000;
const LEAST_RETRY_MS = 50;
const MOST_RETRY_MS = 2000;

export interface KubeletLinkOptions extends Omit<EndpointOptions, 'watched'> {
  readonly claim: Claim;
  readonly logger: Logger;
  registered(): void;
}

/**
 * Keeps the node's slots known to the kubelet, through restarts of it: it removes our socket and makes its own anew, in either order for us,
 * or just stops watching.
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
  #retry = LEAST_RETRY_MS;
  #trouble: string | undefined;

  constructor(options: KubeletLinkOptions) {
    this.#options = options;
    this.#watch = new DirectoryWatch(options.directory, () => this.#look());
  }

  async start(): Promise<void> {
    await removeStaleEndpoints(this.#options.directory);
    this.#look();
  }

  /** The kubelet has the list, and is told of changes. */
  get watched(): boolean {
    return this.#endpoint?.watched ?? false;
  }

  /** Why it is not watched. */
  get trouble(): string | undefined {
    return this.watched ? undefined : (this.#trouble ?? `The kubelet has not yet asked for ${RESOURCE}.`);
  }

  /** The kubelet gives out no slots from now on. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#watch.end();
    this.#closeEndpoint();
  }

  /** One look at a time; what happens meanwhile is looked at afterwards. */
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

  /** @returns milliseconds until the next look. */
  async #settle(): Promise<number> {
    try {
      await this.#registerWhereNeeded();
      this.#retry = LEAST_RETRY_MS;
      this.#trouble = undefined;
      return LOOK_MS;
    } catch (error) {
      this.#tell((error as Error).message);
      this.#retry = Math.min(2 * this.#retry, MOST_RETRY_MS);
      return this.#retry;
    }
  }

  /** @throws PluginError */
  async #registerWhereNeeded(): Promise<void> {
    const { directory, logger, claim } = this.#options;
    if (!this.#watch.renew()) throw new PluginError('KUBELET_DIRECTORY_MISSING', { directory });
    // In this order, for the reason that register() gives.
    const start = kubeletStart(directory);
    if (this.#endpoint && !this.#endpoint.there) this.#closeEndpoint();
    if (start === undefined || (this.#endpoint && this.#known === start && !this.#forgotten)) return;
    if (claim.superseded) throw new PluginError('SUPERSEDED', { resource: RESOURCE });
    this.#endpoint ??= await Endpoint.open({ ...this.#options, watched: (now) => this.#noteWatched(now) });
    if (this.#ended) return this.#closeEndpoint();
    await register(directory, this.#endpoint);
    this.#known = start;
    this.#registeredAt = performance.now();
    this.#options.registered();
    logger.info({ resource: RESOURCE, endpoint: this.#endpoint.name, slots: this.#options.slots.devices.length }, 'registered');
  }

  get #forgotten(): boolean {
    return !this.watched && performance.now() - this.#registeredAt > UNWATCHED_MS;
  }

  /** When nobody watches any more, the kubelet restarts, or it dropped the registration together with that of the plugin before us. */
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

  /** Once, until it is something else. */
  #tell(trouble: string): void {
    if (trouble !== this.#trouble) this.#options.logger.warn(trouble);
    this.#trouble = trouble;
  }
}

/** Sockets of plugins that were killed. */
async function removeStaleEndpoints(directory: string): Promise<void> {
  for (const name of listIfThere(directory).filter((entry) => ENDPOINT_NAME.test(entry))) {
    const socket = path.join(directory, name);
    if ((await whyNotServed(socket)) !== undefined) rmSync(socket, { force: true });
  }
}

function listIfThere(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
