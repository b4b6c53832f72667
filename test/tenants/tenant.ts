import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { environmentFor } from '../cuda-program.js';
import { Diary, type Entry } from '../diary.js';
import { until } from '../processes.js';

let diaries = 0;

export type Load =
  | 'check'
  | 'keep'
  | 'saturate'
  | 'nested'
  | 'compute'
  | 'request'
  | 'gang'
  | 'copy'
  | 'idle';

/** One process of test/tenants/neighbour.cu. */
export class Tenant {
  readonly #process: ChildProcess;
  readonly #diary: Diary;

  /**
   * @param length of its kernels: iterations, or milliseconds if they sleep; of its copies: bytes
   */
  constructor(
    program: string,
    directory: string,
    { socketPath }: AllocationMessage,
    load: Load,
    length = 100,
  ) {
    this.#diary = new Diary(path.join(directory, `diary-${++diaries}`));
    this.#process = spawn(program, [load, this.#diary.path, String(length)], {
      stdio: 'ignore',
      env: environmentFor(socketPath),
    });
  }

  get pid(): number {
    return this.#process.pid ?? -1;
  }

  get running(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  get entry(): Entry {
    return this.#diary.read()[0] as Entry;
  }

  /** Checks that it has made more calls, without a failure. @returns the problems */
  async goesOn(more = 20): Promise<string[]> {
    const aim = this.entry.calls + more;
    const far = await until(() => !this.running || this.entry.calls >= aim);
    if (!this.running) return [`process ${this.pid} ended: ${this.#outcome()}`];
    return far
      ? []
      : [`process ${this.pid} hangs ${this.entry.state} after ${this.entry.calls} calls`];
  }

  /** Ends it normally. @returns the problems */
  async stop(): Promise<string[]> {
    this.#diary.stop();
    const ended = await until(() => !this.running);
    if (!ended) this.kill();
    const { state, calls } = this.entry;
    if (!ended) return [`process ${this.pid} did not end, ${state} after ${calls} calls`];
    return this.#process.exitCode === 0 ? [] : [`process ${this.pid} ended: ${this.#outcome()}`];
  }

  /** Waits for its unexpected end. @returns status or signal, or undefined if it does not end */
  async ended(): Promise<number | string | undefined> {
    await until(() => !this.running);
    return this.#process.exitCode ?? this.#process.signalCode ?? undefined;
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  #outcome(): string {
    const { error, calls } = this.entry;
    const how = this.#process.signalCode ?? `status ${this.#process.exitCode}`;
    return `${how}, error ${error} after ${calls} calls`;
  }
}
