import type { Socket } from 'node:net';
import path from 'node:path';
import type { Grant } from '@nvidia-virtual/node-state/grant';
import { clientSocketIn } from '@nvidia-virtual/node-state/paths';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { readIfThere, writeFileAtomically } from '@nvidia-virtual/service/files';
import type { Logger } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import { ClientSocket } from '../allocations/client-socket.js';
import type { Closer } from '../allocations/closer.js';
import { sendRefusal } from '../allocations/refusal.js';
import { RefusalLog } from '../allocations/refusal-log.js';
import type { BindableGrant } from '../node-types.js';
import type { Peer } from './peer.js';

/** The pod that has a grant. */
export interface GrantedPod {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
}

interface ServedGrantOptions {
  readonly directory: string;
  readonly grant: Grant;
  readonly closer: Closer;
  readonly logger: Logger;
  /** Socket of the former allocation; undefined: a new one is created. */
  readonly socket?: ClientSocket | undefined;
  /** @throws ProxyError */
  identify(connection: Socket): Peer;
  /** @throws ProxyError */
  bind(grant: BindableGrant, peer: Peer): Promise<Allocation>;
  bound(): void;
}

interface Waiting {
  readonly connection: Socket;
  readonly podUid: string;
}

const POD = 'pod.json';
/**
 * Limit on connections that wait for a grant to be bound. Further clients are disconnected and
 * retry.
 */
const MOST_WAITING = 256;

/**
 * A grant that is not yet bound. The first connection binds it; all connections queue until it is
 * an allocation.
 */
export class ServedGrant implements BindableGrant {
  readonly socket: ClientSocket;
  readonly #options: ServedGrantOptions;
  readonly #refusals: RefusalLog;
  #waiting: Waiting[] = [];
  /** UIDs of pods with a binding attempt. Separate, so a wrong pod does not block the right one. */
  readonly #binding = new Set<string>();

  constructor(options: ServedGrantOptions) {
    this.#options = options;
    this.#refusals = new RefusalLog(options.logger.child({ allocation: options.grant.id }));
    this.socket =
      options.socket ??
      new ClientSocket(clientSocketIn(options.directory), options.closer, () => {});
    this.serve();
  }

  get id(): string {
    return this.#options.grant.id;
  }

  get slots(): readonly string[] {
    return this.#options.grant.slots;
  }

  get createdAt(): string {
    return this.#options.grant.createdAt;
  }

  /** Becomes the handler of the socket's connections, also after its allocation was unbound. */
  serve(): void {
    this.socket.accept = (connection) => this.#accept(connection);
  }

  /** @throws ProxyError if the socket cannot be created */
  async listen(): Promise<void> {
    if (!this.socket.open) await this.socket.listen();
  }

  /** Whether a binding attempt is in progress. */
  get busy(): boolean {
    return this.#binding.size > 0;
  }

  get pod(): GrantedPod | undefined {
    const text = readIfThere(path.join(this.#options.directory, POD));
    return text === undefined ? undefined : (JSON.parse(text) as GrantedPod);
  }

  set pod(pod: GrantedPod) {
    writeFileAtomically(path.join(this.#options.directory, POD), JSON.stringify(pod));
  }

  /** Stops serving. The socket stays for the next gpu-proxy. */
  leave(): void {
    this.socket.leave();
    this.#refusals.end();
    for (const { connection } of this.#waiting.splice(0)) connection.destroy();
  }

  #accept(connection: Socket): void {
    try {
      const peer = this.#options.identify(connection);
      if (this.#waiting.length >= MOST_WAITING) {
        connection.destroy();
        return;
      }
      this.#waiting.push({ connection, podUid: peer.podUid });
      if (!this.#binding.has(peer.podUid)) void this.#bind(peer);
    } catch (error) {
      this.#refuse(connection, error as Error);
    }
  }

  async #bind(peer: Peer): Promise<void> {
    const { podUid } = peer;
    this.#binding.add(podUid);
    try {
      const allocation = await this.#options.bind(this, peer);
      // First: an allocation must no longer be treated as a grant, even if a later step fails.
      this.#options.bound();
      this.#noteOwner(allocation);
      this.#refusals.end();
      for (const { connection } of this.#waiting.splice(0)) allocation.accept(connection);
    } catch (error) {
      const refused = this.#waiting.filter((one) => one.podUid === podUid);
      this.#waiting = this.#waiting.filter((one) => one.podUid !== podUid);
      for (const { connection } of refused) this.#refuse(connection, error as Error);
    } finally {
      this.#binding.delete(podUid);
    }
  }

  /** Records the pod, needed if the allocation is unbound. The kubelet's list also names it. */
  #noteOwner({ specification: { owner } }: Allocation): void {
    if (!owner) return;
    try {
      this.pod = { namespace: owner.namespace, pod: owner.pod, podUid: owner.podUid };
    } catch (error) {
      this.#options.logger.warn(
        { allocation: this.id },
        `The pod of the grant could not be saved: ${systemReason(error)}.`,
      );
    }
  }

  #refuse(connection: Socket, error: Error): void {
    const refusal = asRefusal(error);
    this.#refusals.add(refusal);
    sendRefusal(this.#options.closer, connection, refusal);
  }
}

/** Converts any error to one whose message can be sent to the program. */
export function asRefusal(error: unknown): ProxyError {
  return error instanceof ProxyError
    ? error
    : new ProxyError('GRANT_NOT_BOUND', { reason: systemReason(error) });
}
