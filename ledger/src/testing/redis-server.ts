import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { disconnect } from '../disconnect.js';
import type { RedisOptions } from '../redis-options.js';

export interface RedisServerOptions {
  /** A TCP port instead of a Unix socket. */
  readonly tcp?: boolean;
  /** Arguments of redis-server, for example `--requirepass secret`. */
  readonly args?: readonly string[];
  /** PEM files. The port then accepts only TLS. */
  readonly tls?: {
    readonly caFile: string;
    readonly certificateFile: string;
    readonly keyFile: string;
    readonly clientCertificates?: boolean;
  };
  /** Password used by this helper. */
  readonly password?: string;
}

const START_DEADLINE = 30_000;

/**
 * A redis-server for one test, in its own directory. It always ends with the test's process.
 */
export class RedisServer {
  readonly directory: string;
  readonly #options: RedisServerOptions;
  readonly #program: string;
  #port = 0;
  #child: ChildProcess | undefined;
  #output = '';

  private constructor(options: RedisServerOptions) {
    const program = findProgram();
    this.#options = options;
    this.directory = mkdtempSync(path.join(tmpdir(), 'nvidia-virtual-redis-'));
    this.#program = path.join(this.directory, 'redis-server');
    symlinkSync(program, this.#program);
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const server = new RedisServer(options);
    try {
      if (server.#usesTcp) server.#port = await freePort();
      await server.start();
      return server;
    } catch (error) {
      await server.remove();
      throw error;
    }
  }

  /** Options for a ledger to connect, without passwords. */
  get place(): RedisOptions {
    const { tls } = this.#options;
    return { url: this.url, ...(tls && { caFile: tls.caFile }) };
  }

  /** Address as shown in messages. */
  get address(): string {
    return this.#usesTcp ? `127.0.0.1:${this.#port}` : this.socket;
  }

  get url(): string {
    return this.#usesTcp
      ? `${this.#options.tls ? 'rediss' : 'redis'}://${this.address}`
      : `unix://${this.socket}`;
  }

  /**
   * Starts the server, or restarts it on the same address with its saved data. Resolves when it
   * listens.
   */
  async start({
    args = [],
    loading = false,
  }: {
    readonly args?: readonly string[];
    readonly loading?: boolean;
  } = {}): Promise<void> {
    this.#output = '';
    const all = [...this.#arguments(), ...(this.#options.args ?? []), ...args];
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', this.#program, ...all], {
      cwd: this.directory,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    child.once('error', (error) => (this.#output += error.message));
    this.#child = child;
    const deadline = Date.now() + START_DEADLINE;
    while (!(await this.#answers(loading))) {
      if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline)
        throw new Error(`redis-server did not start:\n${this.#output}`);
      await delay(20);
    }
  }

  /** kill -9. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Regular shutdown. It saves its data if configured so. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  /** Sends SIGSTOP. The kernel still accepts connections for it. */
  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** Sends one command on a new connection. */
  async command(name: string, ...args: (string | number)[]): Promise<unknown> {
    const client = this.#client();
    try {
      await client.connect();
      return await client.call(name, args);
    } finally {
      disconnect(client);
    }
  }

  /** Kills the server and removes its directory. */
  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }

  get #usesTcp(): boolean {
    return this.#options.tcp === true || this.#options.tls !== undefined;
  }

  get socket(): string {
    return path.join(this.directory, 'redis.sock');
  }

  #arguments(): string[] {
    const { tls } = this.#options;
    const common = [
      '--dir',
      this.directory,
      '--save',
      '',
      '--daemonize',
      'no',
      '--bind',
      '127.0.0.1',
    ];
    if (!this.#usesTcp) return [...common, '--port', '0', '--unixsocket', this.socket];
    if (!tls) return [...common, '--port', String(this.#port)];
    const files = [
      '--tls-ca-cert-file',
      tls.caFile,
      '--tls-cert-file',
      tls.certificateFile,
      '--tls-key-file',
      tls.keyFile,
    ];
    return [
      ...common,
      '--port',
      '0',
      '--tls-port',
      String(this.#port),
      ...files,
      '--tls-auth-clients',
      tls.clientCertificates ? 'yes' : 'no',
    ];
  }

  #client(): Redis {
    const { tls, password } = this.#options;
    const place = this.#usesTcp ? { host: '127.0.0.1', port: this.#port } : { path: this.socket };
    const client = new Redis({
      ...place,
      ...(tls
        ? {
            tls: {
              ca: readFileSync(tls.caFile),
              cert: readFileSync(tls.certificateFile),
              key: readFileSync(tls.keyFile),
            },
          }
        : {}),
      ...(password === undefined ? {} : { password }),
      lazyConnect: true,
      retryStrategy: () => null,
      enableReadyCheck: false,
      disableClientInfo: true,
    });
    client.on('error', () => undefined);
    return client;
  }

  /** Whether it answers at all. A server that is loading or refuses the password has started. */
  async #answers(loading: boolean): Promise<boolean> {
    try {
      await this.command('PING');
      return true;
    } catch (error) {
      return (
        /^(NOAUTH|WRONGPASS|NOPERM)/.test((error as Error).message) ||
        (loading && (error as Error).message.startsWith('LOADING'))
      );
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGCONT');
    child.kill(signal);
    await ended;
  }
}

/**
 * Debian's redis-tools contains the server without its daemon: redis-check-rdb is the same binary,
 * which chooses its function by its name.
 */
function findProgram(): string {
  for (const name of ['redis-server', 'redis-check-rdb']) {
    const found = (process.env['PATH'] ?? '')
      .split(path.delimiter)
      .map((directory) => path.join(directory, name))
      .find(isExecutable);
    if (found !== undefined) return found;
  }
  throw new Error(
    'redis-server was not found. Install it: `sudo apt-get install redis-tools` on Debian, ' +
      'which starts no daemon.',
  );
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A port that was just free. The kernel assigns ports in turn, so it is not reused soon. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
