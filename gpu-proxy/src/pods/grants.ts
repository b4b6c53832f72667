import { existsSync, type FSWatcher, watch } from 'node:fs';
import path from 'node:path';
import { GRANT, readGrant } from '@nvidia-virtual/node-state/grant';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { removeDirectoryAtomically } from '@nvidia-virtual/service/files';
import type { Logger } from 'pino';
import type { ClientSocket } from '../allocations/client-socket.js';
import type { Addon } from '../host/addon.js';
import type { StateDirectory } from '../host/state-directory.js';
import type { GpuNode } from '../node.js';
import type { Binding } from './binding.js';
import { identifyPeer } from './peer.js';
import { ServedGrant } from './served-grant.js';

interface GrantsOptions {
  readonly node: GpuNode;
  readonly state: StateDirectory;
  readonly addon: Addon;
  readonly binding: Pick<Binding, 'bind'>;
  readonly logger: Logger;
}

/** Polling interval: a watch may miss events, and some file systems do not support it. */
const LOOK_EVERY_MS = 5000;

/**
 * The grants of this node: directories created by the device plugin's Allocate and not yet bound.
 * Each is served as soon as it appears.
 */
export class Grants {
  readonly #options: GrantsOptions;
  readonly #served = new Map<string, ServedGrant>();
  /** Ids of grants already logged as broken. */
  readonly #broken = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #watcher: FSWatcher | undefined;

  constructor(options: GrantsOptions) {
    this.#options = options;
    options.node.on('unbound', this.#serveAgain);
    this.#timer = setInterval(() => this.look(), LOOK_EVERY_MS).unref();
    try {
      this.#watcher = watch(options.state.allocations, () => this.look()).on('error', () =>
        this.#watcher?.close(),
      );
    } catch (error) {
      options.logger.warn(
        `The directory of grants cannot be watched and is read every ` +
          `${LOOK_EVERY_MS / 1000} s: ${(error as Error).message}.`,
      );
    }
    this.look();
  }

  /** All unbound grants. */
  get all(): ServedGrant[] {
    return [...this.#served.values()];
  }

  /** Serves new grants and forgets removed ones. */
  look(): void {
    const { node, state } = this.#options;
    const ids = new Set(state.ids());
    for (const grant of this.all) if (!ids.has(grant.id)) this.#forget(grant);
    // Includes allocations that this gpu-proxy cannot read: they may have workers of another one.
    const known = new Set([
      ...this.#served.keys(),
      ...node.allocations.map(({ id }) => id),
      ...state.allocationIds(),
    ]);
    for (const id of ids) if (!known.has(id)) this.#serve(id);
  }

  /** Removes a grant and its directory. */
  remove(grant: ServedGrant): void {
    this.#forget(grant);
    removeDirectoryAtomically(path.join(this.#options.state.allocations, grant.id));
  }

  /** Stops serving. The sockets stay for the next gpu-proxy. */
  leave(): void {
    this.#options.node.off('unbound', this.#serveAgain);
    clearInterval(this.#timer);
    this.#watcher?.close();
    for (const grant of this.all) this.#forget(grant);
  }

  readonly #serveAgain = (id: string, socket: ClientSocket) => {
    const grant = this.#served.get(id);
    if (grant) grant.serve();
    else this.#serve(id, socket);
  };

  #serve(id: string, socket?: ClientSocket): void {
    const { node, state, addon, binding, logger } = this.#options;
    const directory = path.join(state.allocations, id);
    const grant = readGrant(directory);
    if (!grant) {
      this.#noteBroken(id, directory);
      return;
    }
    const served = new ServedGrant({
      ...{ directory, grant, logger, socket, closer: node.closer },
      identify: (connection) => identifyPeer(addon, connection),
      bind: (bindable, peer) => binding.bind(bindable, peer),
      bound: () => this.#served.delete(id),
    });
    this.#served.set(id, served);
    served.listen().then(
      () => logger.info({ allocation: id, slots: grant.slots }, 'grant served'),
      (error: Error) => {
        this.#served.delete(id);
        logger.error({ allocation: id }, error.message);
      },
    );
  }

  /** Logs a broken grant once. The directory stays, because another version may read it. */
  #noteBroken(id: string, directory: string): void {
    const file = path.join(directory, GRANT);
    if (this.#broken.has(id) || !existsSync(file)) return;
    this.#broken.add(id);
    this.#options.logger.error(
      { allocation: id },
      new ProxyError('GRANT_BROKEN', { file, known: 1, directory }).message,
    );
  }

  #forget(grant: ServedGrant): void {
    this.#served.delete(grant.id);
    grant.leave();
  }
}
