import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { systemReason } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import { type Addon, descriptorOf } from '../host/addon.js';

/** Counts of refused connections, by the side whose state is the reason. */
export interface Refusals {
  pod: number;
  node: number;
}

interface CloserOptions {
  /** native/closer */
  readonly executable: string;
  readonly addon: Addon;
  readonly logger: Logger;
}

/** Packet types; native/closer/README.md. */
const KIND = { hold: 1, close: 2, answer: 3 } as const;

interface Process {
  readonly child: ChildProcess;
  readonly control: number;
}

/** Timeout to send a packet. The closer never waits for a client, so it reads without delay. */
const PATIENCE_MS = 1000;
const RESTART_MS = 100;
const NOTHING = new Uint8Array();

/**
 * Delegates the last close of client sockets to another process, nvidia-virtual-closer. If a client
 * queued descriptors in a socket, reading it and closing it last can block as long as the client
 * wants. So gpu-proxy never reads held sockets, and the closer keeps a copy of each until gpu-proxy
 * has closed its own.
 */
export class Closer {
  readonly refusals: Refusals = { pod: 0, node: 0 };
  readonly #options: CloserOptions;
  readonly #held = new Map<number, Socket | Server>();
  readonly #ids = new WeakMap<Socket, number>();
  readonly #answers = new Map<number, Uint8Array>();
  #process: Process | undefined;
  #restart: NodeJS.Timeout | undefined;
  #last = 0;

  constructor(options: CloserOptions) {
    this.#options = options;
  }

  /** Holds a newly accepted connection until it is closed. */
  hold(connection: Socket): void {
    const id = this.#take(connection);
    this.#ids.set(connection, id);
    connection.once('close', () => this.#release(id));
  }

  /** Holds a listening server. Returns a function to release it, called after server.close(). */
  holdListener(server: Server): () => void {
    const id = this.#take(server);
    return () => this.#release(id);
  }

  /**
   * Closes a connection. The closer first reads the client's hello and sends `answer`, within 5 s.
   */
  answer(connection: Socket, answer: Uint8Array): void {
    const id = this.#ids.get(connection);
    if (id !== undefined) this.#answers.set(id, answer);
    connection.destroy();
  }

  /** Kills the closer. Requires that held sockets are closed, or that gpu-proxy exits next. */
  end(): void {
    clearTimeout(this.#restart);
    this.#letGo();
    this.#held.clear();
  }

  #take(socket: Socket | Server): number {
    const id = ++this.#last;
    this.#held.set(id, socket);
    this.#say(KIND.hold, id, NOTHING, [descriptorOf(socket)]);
    return id;
  }

  #release(id: number): void {
    // After end() the closer and its copies are gone.
    if (!this.#held.delete(id)) return;
    const answer = this.#answers.get(id);
    this.#answers.delete(id);
    if (answer) this.#say(KIND.answer, id, answer, []);
    else this.#say(KIND.close, id, NOTHING, []);
  }

  #say(kind: number, id: number, payload: Uint8Array, files: readonly number[]): void {
    try {
      this.#process ??= this.#start();
      this.#send(this.#process, kind, id, payload, files);
    } catch (error) {
      this.#replace(systemReason(error));
    }
  }

  #send(
    { control }: Process,
    kind: number,
    id: number,
    payload: Uint8Array,
    files: readonly number[],
  ): void {
    const packet = Buffer.alloc(8 + payload.length);
    packet.writeUInt32LE(kind, 0);
    packet.writeUInt32LE(id, 4);
    packet.set(payload, 8);
    this.#options.addon.sendDescriptors(control, packet, files, PATIENCE_MS);
  }

  #start(): Process {
    const { addon, executable } = this.#options;
    const [control, theirs] = addon.socketPair();
    try {
      const child = spawn(executable, {
        stdio: ['ignore', 'ignore', 'ignore', theirs],
        detached: true,
      });
      const started = { child, control };
      const lost = (reason: string) => this.#process === started && this.#replace(reason);
      child.once('error', (error) => lost(error.message));
      child.once('exit', (status, signal) => lost(`it ended with ${signal ?? `status ${status}`}`));
      child.unref();
      return started;
    } catch (error) {
      closeSync(control);
      throw error;
    } finally {
      closeSync(theirs);
    }
  }

  /**
   * Starts a new closer and gives it all open sockets. The exit of the old one closes its copies.
   */
  #replace(reason: string): void {
    this.#options.logger.warn(`nvidia-virtual-closer is restarted: ${reason}`);
    this.#letGo();
    clearTimeout(this.#restart);
    this.#restart = setTimeout(() => this.#holdAll(), RESTART_MS).unref();
  }

  #holdAll(): void {
    try {
      this.#process ??= this.#start();
      for (const [id, socket] of this.#held)
        if (isOpen(socket))
          this.#send(this.#process, KIND.hold, id, NOTHING, [descriptorOf(socket)]);
    } catch (error) {
      this.#replace(systemReason(error));
    }
  }

  #letGo(): void {
    if (!this.#process) return;
    const { child, control } = this.#process;
    this.#process = undefined;
    closeSync(control);
    child.kill('SIGKILL');
  }
}

function isOpen(socket: Socket | Server): boolean {
  return 'destroyed' in socket ? !socket.destroyed : socket.listening;
}
