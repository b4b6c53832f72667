import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const BINARY = path.resolve(import.meta.dirname, '../../bin/gpu-proxy.js');

const WORKERS = ['nvidia-virtual-worker', 'nvidia-virtual-arbiter'];

interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Temporary directory for the commands of one test. */
export class Place {
  readonly directory = mkdtempSync(path.join(tmpdir(), 'place-'));

  /** Empty if nothing was left behind. */
  leftovers(): string[] {
    return readdirSync(this.directory);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** A gpu-proxy command as a user starts it, in its own session so that no terminal interferes. */
export class CommandUnderTest {
  readonly process: ChildProcessWithoutNullStreams;
  stdout = '';
  stderr = '';
  readonly #closed: Promise<unknown>;

  constructor(place: Place, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const { XDG_RUNTIME_DIR: _, ...inherited } = process.env;
    this.process = spawn(process.execPath, [BINARY, ...args], {
      env: { ...inherited, TMPDIR: place.directory, ...env },
      detached: true,
    });
    this.process.stdout.on('data', (data: Buffer) => {
      this.stdout += data;
    });
    this.process.stderr.on('data', (data: Buffer) => {
      this.stderr += data;
    });
    this.#closed = once(this.process, 'close');
  }

  async end(): Promise<Outcome> {
    await this.#closed;
    return { status: this.process.exitCode, stdout: this.stdout, stderr: this.stderr };
  }

  /** Waits until it has printed this text. */
  async printed(text: string): Promise<void> {
    while (!this.stdout.includes(text))
      await Promise.race([once(this.process.stdout, 'data'), this.#mustNotEnd(text)]);
  }

  async #mustNotEnd(text: string): Promise<void> {
    await this.#closed;
    if (!this.stdout.includes(text))
      throw new Error(`it ended without printing ${text}: ${this.stdout}${this.stderr}`);
  }

  /** Pids of the running workers and arbiters that it started, without those that read NVML. */
  workers(): number[] {
    const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return processes
      .map(Number)
      .filter((pid) => parentOf(pid) === this.process.pid && isWorker(pid));
  }
}

export function gpuProxy(place: Place, ...args: string[]): Promise<Outcome> {
  return new CommandUnderTest(place, args).end();
}

function parentOf(pid: number): number | undefined {
  const stat = readProc(pid, 'stat');
  return stat === undefined
    ? undefined
    : Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

function isWorker(pid: number): boolean {
  const words = readProc(pid, 'cmdline')?.split('\0') ?? [];
  return WORKERS.includes(path.basename(words[0] ?? '')) && !words.includes('--processes');
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}
