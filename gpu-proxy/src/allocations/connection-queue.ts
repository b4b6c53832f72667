import type { Socket } from 'node:net';
import { identifyProcess, isAlive } from '@nvidia-virtual/service/process-table';
import type { PeerCredentials } from '../host/addon.js';
import { StartRateLimit } from './start-rate-limit.js';

/** A connection in the queue for a worker. */
export interface QueuedConnection {
  readonly connection: Socket;
  readonly peer: PeerCredentials;
}

interface ConnectionQueueOptions {
  /** The number of workers that started and have not become sessions yet. */
  starting(): number;
  /** Whether a client has ended, or wants no worker. */
  gone(next: QueuedConnection): boolean;
  /** Whether the node has room for a worker now. If not, it calls resume() later. */
  mayStart(): boolean;
  /** Starts the worker of a connection. */
  start(next: QueuedConnection): void;
  /** A queued connection was dropped without a worker. */
  dropped(): void;
  readonly limit?: StartRateLimit;
}

/**
 * Limit on concurrent worker starts of an allocation. Further connections queue, so a tenant cannot
 * flood the node with processes.
 */
const STARTING_AT_ONCE = 16;
/** How often a queue that stands still is searched for clients that have ended. */
const LOOK_MS = 1000;

/** The accepted connections of an allocation that have no worker yet: first in, first out. */
export class ConnectionQueue {
  readonly #options: ConnectionQueueOptions;
  readonly #limit: StartRateLimit;
  readonly #queue: QueuedConnection[] = [];
  #turn: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
  #look: NodeJS.Timeout | undefined;

  constructor(options: ConnectionQueueOptions) {
    this.#options = options;
    this.#limit = options.limit ?? new StartRateLimit();
  }

  get length(): number {
    return this.#queue.length;
  }

  /** Whether a program waits for a worker. */
  get waits(): boolean {
    return this.#queue.some((next) => !this.#options.gone(next));
  }

  add(connection: QueuedConnection): void {
    this.#queue.push(connection);
    this.resume();
  }

  /** Continues. Called when there may be room for a worker. */
  resume(): void {
    if (this.#queue.length > 0) this.#takeTurns();
  }

  /** A worker became a session: its start does not count in the rate limit. */
  noteSession(): void {
    this.#limit.giveBack();
  }

  /** Closes all queued connections. */
  drop(): void {
    clearImmediate(this.#turn);
    clearTimeout(this.#later);
    clearInterval(this.#look);
    this.#turn = this.#look = undefined;
    for (const { connection } of this.#queue.splice(0)) connection.destroy();
  }

  /**
   * Starts one worker in each turn of the event loop, so that no allocation delays another.
   */
  #takeTurns(): void {
    if (this.#turn) return;
    this.#turn = setImmediate(() => {
      this.#turn = undefined;
      const next = this.#mayStart() ? this.#queue.shift() : undefined;
      if (!next) return this.#dropGone();
      this.#take(next);
      this.resume();
    });
  }

  /** The queue may stand still for hours, while the allocation is suspended. */
  #dropGone(): void {
    const gone = this.#queue.filter((next) => this.#options.gone(next));
    for (const next of gone) {
      this.#queue.splice(this.#queue.indexOf(next), 1);
      this.#drop(next);
    }
    this.#look ??= setInterval(() => {
      if (this.#queue.length > 0) return this.resume();
      clearInterval(this.#look);
      this.#look = undefined;
    }, LOOK_MS).unref();
  }

  #drop({ connection }: QueuedConnection): void {
    connection.destroy();
    this.#options.dropped();
  }

  #mayStart(): boolean {
    if (this.#options.starting() >= STARTING_AT_ONCE || !this.#options.mayStart()) return false;
    const milliseconds = this.#limit.wait();
    if (milliseconds === 0) return true;
    clearTimeout(this.#later);
    this.#later = setTimeout(() => this.resume(), milliseconds).unref();
    return false;
  }

  #take(next: QueuedConnection): void {
    if (this.#options.gone(next)) {
      this.#drop(next);
    } else {
      this.#limit.take();
      this.#options.start(next);
    }
  }
}

/**
 * Connections of dead clients get no worker. A pid of 0 means that the client is outside of this
 * PID namespace.
 */
export function hasGone({ pid }: PeerCredentials): boolean {
  return pid > 0 && !isAlive(identifyProcess(pid));
}
