import type { Socket } from 'node:net';
import path from 'node:path';
import type { Logger } from 'pino';
import type { Allocation } from '../allocation.js';
import { ClientSocket } from '../client-socket.js';
import { ProxyError, systemReason } from '../errors.js';
import { readIfThere, writeFileAtomically } from '../files.js';
import type { Grant } from '../grant.js';
import type { BindableGrant } from '../node.js';
import { sendRefusal } from '../refusal.js';
import { RefusalLog } from '../refusal-log.js';
import type { Peer } from './peer.js';

/** The pod to which the kubelet gave a grant, as far as it is known. */
export interface GrantedPod {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
}

export interface ServedGrantOptions {
  readonly directory: string;
  readonly grant: Grant;
  readonly logger: Logger;
  /** That of the allocation that it was before; undefined: one is made. */
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
/** So many programs may wait for their container to be bound; who comes beyond is sent away, and tries again. */
const MOST_WAITING = 256;

/** A grant that nobody has used yet: whoever connects first binds it, and waits, with all that come meanwhile, until it is an allocation. */
export class ServedGrant implements BindableGrant {
  readonly socket: ClientSocket;
  readonly #options: ServedGrantOptions;
  readonly #refusals: RefusalLog;
  #waiting: Waiting[] = [];
  /** UIDs of the pods that try: one that may not must not hold up the one that may. */
  readonly #binding = new Set<string>();

  constructor(options: ServedGrantOptions) {
    this.#options = options;
    this.#refusals = new RefusalLog(options.logger.child({ allocation: options.grant.id }));
    this.socket = options.socket ?? new ClientSocket(path.join(options.directory, 'client', 'gpu.sock'), () => {});
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

  /** Takes the connections of its socket, from an allocation that is none any more. */
  serve(): void {
    this.socket.accept = (connection) => this.#accept(connection);
  }

  /** @throws ProxyError when the socket cannot be made. */
  async listen(): Promise<void> {
    if (!this.socket.open) await this.socket.listen();
  }

  /** Somebody is waiting just now. */
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

  /** The socket stays for the next proxy. */
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
      // First of all: what is an allocation must not be taken for a grant any more, whatever fails.
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

  /** For when it is a grant again. The kubelet says it too. */
  #noteOwner({ specification: { owner } }: Allocation): void {
    if (!owner) return;
    try {
      this.pod = { namespace: owner.namespace, pod: owner.pod, podUid: owner.podUid };
    } catch (error) {
      this.#options.logger.warn({ allocation: this.id }, `Whose the grant is could not be written down: ${systemReason(error)}.`);
    }
  }

  #refuse(connection: Socket, error: Error): void {
    const refusal = asRefusal(error);
    this.#refusals.add(refusal);
    sendRefusal(connection, refusal.message);
  }
}

/** A program is told a sentence, whatever went wrong. */
export function asRefusal(error: unknown): ProxyError {
  return error instanceof ProxyError ? error : new ProxyError('GRANT_NOT_BOUND', { reason: systemReason(error) });
}
