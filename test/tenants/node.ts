import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { RedisLedger, type SessionRecord } from '@nvidia-virtual/ledger';
import { AdminClient } from '@nvidia-virtual/node-state/admin/client';
import type {
  AllocationMessage,
  CreateAllocationRequest,
} from '@nvidia-virtual/node-state/admin/messages';
import { arbiterSocketIn } from '@nvidia-virtual/node-state/paths';
import { GPU_PROXY } from '../paths.js';
import { lookUntil, openFiles, processesWith, until } from '../processes.js';

interface Settings {
  readonly options?: readonly string[] | undefined;
  readonly environment?: NodeJS.ProcessEnv | undefined;
}

/**
 * A `gpu-proxy serve` with its own state directory and the simulated GPU, used through its public
 * interfaces.
 */
export class TestNode {
  readonly state: string;
  /** Its entries in the ledger. */
  readonly ledger: RedisLedger;
  readonly #directory: string;
  readonly #log: string;
  readonly #options: readonly string[];
  readonly #environment: NodeJS.ProcessEnv;
  #process: ChildProcess | undefined;
  #client: AdminClient | undefined;

  /**
   * @param directory for its state and its log. @param url of the Redis of its ledger. @param given
   * arguments of `gpu-proxy serve`
   */
  constructor(directory: string, url: string, { options = [], environment = {} }: Settings = {}) {
    this.#directory = directory;
    this.#options = ['--ledger-url', url, ...options];
    this.#environment = environment;
    this.ledger = new RedisLedger({ redis: { url } });
    this.state = path.join(directory, 'state');
    this.#log = path.join(directory, 'log');
  }

  /** Starts it, also again after kill(): it then finds the earlier sessions. */
  async start(): Promise<void> {
    const log = openSync(this.#log, 'a');
    const lines = this.#served();
    this.#process = spawn(
      process.execPath,
      [GPU_PROXY, 'serve', '--state', this.state, '--backend', 'simulated', ...this.#options],
      {
        stdio: ['ignore', log, log],
        env: { ...process.env, ...this.#environment, TMPDIR: this.#directory },
      },
    );
    closeSync(log);
    const serving = await until(() => this.#served() > lines || !this.alive);
    if (!serving || !this.alive) throw new Error(`gpu-proxy serve did not come up:\n${this.log()}`);
    this.#client = await AdminClient.connect(this.state);
  }

  get pid(): number {
    return this.#process?.pid ?? -1;
  }

  get alive(): boolean {
    return this.#process?.exitCode === null && this.#process.signalCode === null;
  }

  /** Kills it without warning. */
  async kill(): Promise<void> {
    this.#disconnect();
    this.#process?.kill('SIGKILL');
    await until(() => !this.alive);
  }

  /** False if it did not end by itself. */
  async stop(): Promise<boolean> {
    this.#disconnect();
    this.#process?.kill('SIGTERM');
    const ended = await until(() => !this.alive);
    if (!ended) await this.kill();
    return ended;
  }

  /** Ends the arbiter that it left running. */
  sweep(): void {
    for (const pid of this.processes()) process.kill(pid, 'SIGKILL');
  }

  create(request: CreateAllocationRequest): Promise<AllocationMessage> {
    return this.#connected.call('createAllocation', request);
  }

  async delete({ id }: { readonly id: string }): Promise<void> {
    await this.#connected.call('deleteAllocation', { id, force: false });
  }

  async suspend({ id }: { readonly id: string }): Promise<void> {
    await this.#connected.call('suspendAllocation', { id });
  }

  async resume({ id }: { readonly id: string }): Promise<void> {
    await this.#connected.call('resumeAllocation', { id });
  }

  look({ id }: { readonly id: string }): Promise<AllocationMessage> {
    return this.#connected.call('getAllocation', { id });
  }

  /** The sessions of an allocation in the ledger. */
  async writtenSessions({ id }: { readonly id: string }): Promise<SessionRecord[]> {
    const nodes = await this.ledger.snapshots();
    return nodes
      .flatMap(({ allocations }) => allocations)
      .filter(({ specification }) => specification.id === id)
      .flatMap(({ sessions }) => sessions.map(({ record }) => record));
  }

  /** A consistent snapshot. */
  async list(): Promise<readonly AllocationMessage[]> {
    return (await this.#connected.call('listAllocations', {})).allocations;
  }

  /** Waits until the allocation fulfils the condition. @returns its last state */
  until(
    allocation: { readonly id: string },
    holds: (now: AllocationMessage) => boolean,
  ): Promise<AllocationMessage> {
    return lookUntil(() => this.look(allocation), holds, { everyMs: 5 });
  }

  directoryOf({ id }: { readonly id: string }): string {
    return path.join(this.state, 'allocations', id);
  }

  /** Its workers and its arbiter, whichever gpu-proxy started them. */
  processes(): number[] {
    return processesWith(`TMPDIR=${this.#directory}\0`, 'environ').filter(
      (pid) => pid !== this.pid,
    );
  }

  arbiter(): number | undefined {
    return processesWith(`--socket\0${arbiterSocketIn(this.state)}\0`)[0];
  }

  openFiles(): string[] {
    return openFiles(this.pid);
  }

  /** All paths in its state directory. */
  files(): string[] {
    return existsSync(this.state)
      ? (readdirSync(this.state, { recursive: true }) as string[]).sort()
      : [];
  }

  log(): string {
    return existsSync(this.#log) ? readFileSync(this.#log, 'utf8') : '';
  }

  get #connected(): AdminClient {
    if (!this.#client) throw new Error('the node was not started');
    return this.#client;
  }

  #served(): number {
    return this.log().split('"msg":"serving"').length - 1;
  }

  #disconnect(): void {
    this.#client?.close();
    this.#client = undefined;
  }
}
