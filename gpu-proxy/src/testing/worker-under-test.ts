import {
  type ChildProcess,
  type ChildProcessByStdio,
  type StdioOptions,
  spawn,
} from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { Addon, descriptorOf, makeBlocking } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';

type Client = ChildProcessByStdio<Writable, Readable, null>;

/**
 * Client programs and real workers on the simulated driver, without a proxy: the test does its
 * work.
 */
export class Scene {
  readonly installation = locateInstallation();
  readonly addon = new Addon(this.installation.addon);
  readonly directory = makePrivateDirectory();
  readonly report = path.join(this.directory, 'report');
  readonly log = path.join(this.directory, 'log');
  readonly #processes = new Set<ChildProcess>();
  readonly #server: Server = createServer({ pauseOnConnect: true });
  #awaited = 0;
  readonly #listening = new Promise<void>((resolve) =>
    this.#server.listen(path.join(this.directory, 'gpu.sock'), resolve),
  );

  constructor() {
    // A client retries once if its worker exits silently. Nothing accepts the second connection.
    this.#server.on('connection', (connection: Socket) => {
      if (this.#awaited-- <= 0) connection.destroy();
    });
  }

  /** Starts a program with our libcuda.so.1 and waits until it has connected. */
  async connect(
    command: readonly string[],
    env: NodeJS.ProcessEnv = {},
  ): Promise<{ client: Client; connection: Socket }> {
    await this.#listening;
    this.#awaited = 1;
    const accepted = once(this.#server, 'connection') as Promise<[Socket]>;
    const client = spawn(command[0] as string, command.slice(1), {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        ...process.env,
        LD_LIBRARY_PATH: this.installation.interposerDirectory,
        NVIDIA_VIRTUAL_SOCKET: path.join(this.directory, 'gpu.sock'),
        ...env,
      },
    });
    this.#processes.add(client);
    const [connection] = await accepted;
    makeBlocking(connection);
    return { client, connection };
  }

  /** A worker for this connection, with report and log in files, as in a session. */
  startWorker(
    connection: Socket,
    args: readonly string[],
    log: number = this.openLog(),
  ): ChildProcess {
    const report = openSync(this.report, 'a');
    const worker = this.start(args, ['ignore', 'ignore', log, connection, report]);
    closeSync(report);
    connection.destroy();
    return worker;
  }

  /**
   * A worker that has initialized its driver and waits. `control` is the proxy's end of its socket.
   */
  async startWarm(
    args: readonly string[] = [],
  ): Promise<{ worker: ChildProcess; control: number }> {
    const [control, theirs] = this.addon.socketPair();
    const worker = this.start(['--warm', ...args], ['ignore', 'ignore', 'inherit', theirs, 'pipe']);
    closeSync(theirs);
    const [line] = await once(worker.stdio[4] as Readable, 'data');
    if (String(line) !== '{"event":"warm"}\n') throw new Error(`not warm: ${line}`);
    return { worker, control };
  }

  /** Passes the client to a warm worker. */
  assign(control: number, connection: Socket, args: readonly string[]): void {
    const report = openSync(this.report, 'a');
    const log = this.openLog();
    const words = ['--driver', this.installation.simulatedDriver, ...args];
    this.addon.sendDescriptors(control, Buffer.from(words.join('\0')), [
      descriptorOf(connection),
      report,
      log,
      log, // no commands are sent
    ]);
    for (const fd of [control, report, log]) closeSync(fd);
    connection.destroy();
  }

  start(args: readonly string[], stdio: StdioOptions): ChildProcess {
    const { worker, simulatedDriver } = this.installation;
    const child = spawn(worker, ['--driver', simulatedDriver, ...args], { stdio, detached: true });
    this.#processes.add(child);
    return child;
  }

  openLog(): number {
    return openSync(this.log, 'a');
  }

  /** The events of the report so far. */
  events(): Record<string, unknown>[] {
    if (!existsSync(this.report)) return [];
    const lines = readFileSync(this.report, 'utf8').split('\n').filter(Boolean);
    return lines.map((line) => JSON.parse(line));
  }

  logged(): string {
    return existsSync(this.log) ? readFileSync(this.log, 'utf8') : '';
  }

  async remove(): Promise<void> {
    for (const child of this.#processes) child.kill('SIGKILL');
    await new Promise((resolve) => this.#server.close(resolve));
    removePrivateDirectory(this.directory);
  }
}

/** Output of a program after the lines that were read. */
const printed = new WeakMap<Client, string>();

/** All further output of a program. */
export async function outputOf(client: Client): Promise<string> {
  client.stdout.on('data', (data: Buffer) =>
    printed.set(client, (printed.get(client) ?? '') + data),
  );
  await once(client, 'close');
  return printed.get(client) ?? '';
}

/** The next line of output of a program. */
export async function lineOf(client: Client): Promise<string> {
  let text = printed.get(client) ?? '';
  while (!text.includes('\n')) text += String((await once(client.stdout, 'data'))[0]);
  const end = text.indexOf('\n');
  printed.set(client, text.slice(end + 1));
  return text.slice(0, end);
}

/** The next lines of output of a program. */
export async function linesOf(client: Client, count: number): Promise<string[]> {
  const lines = [];
  while (lines.length < count) lines.push(await lineOf(client));
  return lines;
}
