import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import path from 'node:path';
import type { ControlPlane } from '../../kubernetes/control-plane.js';
import type { Daemon } from '../../kubernetes/daemon.js';
import { freePorts } from '../../kubernetes/ports.js';
import { REPOSITORY } from '../../paths.js';

const PROGRAM = path.join(REPOSITORY, 'scheduler-ext', 'bin', 'scheduler-ext.js');

/** /proc counts processor time in ticks of 10 ms on every Linux. */
const MILLISECONDS_PER_TICK = 10;

/** The extender as a separate process, with the protocol of kube-scheduler. */
export class ExtenderProcess {
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(
    readonly port: number,
    readonly httpPort: number,
    readonly daemon: Daemon,
  ) {}

  /** Resolves when it knows all nodes and pods. */
  static async start(plane: ControlPlane): Promise<ExtenderProcess> {
    const [port, http] = (await freePorts(2)) as [number, number];
    const addresses = ['--listen', `127.0.0.1:${port}`, '--http', `127.0.0.1:${http}`];
    const args = [
      PROGRAM,
      'extender',
      '--kubeconfig',
      plane.adminKubeconfig,
      ...addresses,
      '--log-level',
      'warn',
    ];
    const extender = new ExtenderProcess(
      port,
      http,
      plane.startDaemon('extender', { program: process.execPath, args }),
    );
    await extender.daemon.serving(() => extender.#ready());
    return extender;
  }

  /**
   * Request and answer are bytes, so that the caller starts the clock after the request is
   * serialized and stops it before the answer is parsed.
   */
  async ask(verb: string, body: Buffer): Promise<Buffer[]> {
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    return new Promise((resolve, reject) => {
      const asked = request(
        { port: this.port, path: `/${verb}`, method: 'POST', headers, agent: this.#agent },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('end', () => resolve(chunks)).on('error', reject);
        },
      );
      asked.on('error', reject).end(body);
    });
  }

  /** Maximum memory use in MiB. */
  get peakMemory(): number {
    const [, kib] =
      /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.daemon.pid}/status`, 'utf8')) ?? [];
    return Number(kib) / 1024;
  }

  /** Processor time in milliseconds. */
  get processorTime(): number {
    const afterName = readFileSync(`/proc/${this.daemon.pid}/stat`, 'utf8').split(') ')[1] ?? '';
    const [user = 0, system = 0] = afterName.split(' ').slice(11, 13).map(Number);
    return (user + system) * MILLISECONDS_PER_TICK;
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.daemon.stop();
  }

  async #ready(): Promise<boolean> {
    const answer = await fetch(`http://127.0.0.1:${this.httpPort}/readyz`).catch(() => undefined);
    await answer?.text();
    return answer?.status === 200;
  }
}

export function question(args: object): Buffer {
  return Buffer.from(JSON.stringify(args));
}

export function answer<T>(chunks: readonly Buffer[]): T {
  return JSON.parse(Buffer.concat(chunks).toString()) as T;
}
