import { existsSync, type FSWatcher, watch } from 'node:fs';
import path from 'node:path';
import type { Logger } from 'pino';
import type { Addon } from '../addon.js';
import type { ClientSocket } from '../client-socket.js';
import { ProxyError } from '../errors.js';
import { removeDirectoryAtomically } from '../files.js';
import { GRANT, readGrant } from '../grant.js';
import type { GpuNode } from '../node.js';
import type { StateDirectory } from '../state-directory.js';
import type { Binding } from './binding.js';
import { identifyPeer } from './peer.js';
import { ServedGrant } from './served-grant.js';

export interface GrantsOptions {
  readonly node: GpuNode;
  readonly state: StateDirectory;
  readonly addon: Addon;
  readonly binding: Pick<Binding, 'bind'>;
  readonly logger: Logger;
}

/** A watch may miss what happens, and some file systems have none. */
const LOOK_EVERY_MS = 5000;

/** The directories that Allocate made and that are no allocations yet: each is served from when it appears. */
export class Grants {
  readonly #options: GrantsOptions;
  readonly #served = new Map<string, ServedGrant>();
  /** The log has them. */
  readonly #broken = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #watcher: FSWatcher | undefined;

  constructor(options: GrantsOptions) {
    this.#options = options;
    options.node.on('unbound', this.#serveAgain);
    this.#timer = setInterval(() => this.look(), LOOK_EVERY_MS).unref();
    try {
      this.#watcher = watch(options.state.allocations, () => this.look()).on('error', () => this.#watcher?.close());
    } catch (error) {
      options.logger.warn(`New grants are noticed every ${LOOK_EVERY_MS / 1000} s only: ${(error as Error).message}.`);
    }
    this.look();
  }

  /** Those that are no allocations. */
  get all(): ServedGrant[] {
    return [...this.#served.values()];
  }

  /** Serves what is new. */
  look(): void {
    const { node, state } = this.#options;
    const ids = new Set(state.ids());
    for (const grant of this.all) if (!ids.has(grant.id)) this.#forget(grant);
    // By its files and not only by what the node serves: beneath one that this proxy cannot read, workers of another may run.
    const known = new Set([...this.#served.keys(), ...node.allocations.map(({ id }) => id), ...state.allocationIds()]);
    for (const id of ids) if (!known.has(id)) this.#serve(id);
  }

  /** Nobody needs it any more. */
  remove(grant: ServedGrant): void {
    this.#forget(grant);
    removeDirectoryAtomically(path.join(this.#options.state.allocations, grant.id));
  }

  /** The sockets stay for the next proxy. */
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
    const { state, addon, binding, logger } = this.#options;
    const directory = path.join(state.allocations, id);
    const grant = readGrant(directory);
    if (!grant) {
      this.#noteBroken(id, directory);
      return;
    }
    const served = new ServedGrant({
      ...{ directory, grant, logger, socket },
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

  /** Says it once. It may be of another version, so it stays. */
  #noteBroken(id: string, directory: string): void {
    const file = path.join(directory, GRANT);
    if (this.#broken.has(id) || !existsSync(file)) return;
    this.#broken.add(id);
    this.#options.logger.error({ allocation: id }, new ProxyError('GRANT_BROKEN', { file, known: 1, directory }).message);
  }

  #forget(grant: ServedGrant): void {
    this.#served.delete(grant.id);
    grant.leave();
  }
}
