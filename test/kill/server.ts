import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { GPU_PROXY } from '../paths.js';
import { childrenOf, openFiles, until, workersWhere } from '../processes.js';

/** A gpu-proxy that serves a socket in a temporary directory. */
export class Server {
  readonly socket: string;
  private readonly process: ChildProcess;

  private constructor(
    private readonly directory: string,
    memory: string,
  ) {
    this.socket = path.join(directory, 'gpu.sock');
    const log = openSync(path.join(directory, 'log'), 'w');
    const args = [
      GPU_PROXY,
      'serve',
      '--socket',
      this.socket,
      '--backend',
      'simulated',
      '--memory',
      memory,
    ];
    this.process = spawn(process.execPath, args, {
      stdio: ['ignore', log, log],
      env: { ...process.env, TMPDIR: directory },
    });
  }

  static async start(directory: string, memory: string): Promise<Server> {
    const server = new Server(directory, memory);
    if (await until(() => existsSync(server.socket))) return server;
    await server.stop();
    throw new Error(`gpu-proxy serve did not open its socket:\n${server.log()}`);
  }

  private get pid(): number {
    return this.process.pid ?? -1;
  }

  get alive(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  workers(): number[] {
    const children = childrenOf(this.pid);
    return workersWhere((pid) => children.includes(pid));
  }

  openFiles(): string[] {
    return openFiles(this.pid);
  }

  log(): string {
    return readFileSync(path.join(this.directory, 'log'), 'utf8');
  }

  /** Terminates it; false if it had to be killed. */
  async stop(): Promise<boolean> {
    this.process.kill('SIGTERM');
    const ended = await until(() => !this.alive);
    if (!ended) this.process.kill('SIGKILL');
    return ended;
  }
}
