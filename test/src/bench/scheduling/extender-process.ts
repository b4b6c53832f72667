import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../../kubernetes/ports.js';
import { REPOSITORY } from '../../paths.js';

const PROGRAM = path.join(REPOSITORY, 'scheduler-ext', 'bin', 'scheduler-ext.js');

/** The extender as a process of its own, and as kube-scheduler talks to it. */
export class ExtenderProcess {
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(
    readonly port: number,
    readonly httpPort: number,
    readonly child: ChildProcess,
  ) {}

  /** Resolves once it knows all nodes and pods. */
  static async start(kubeconfig: string): Promise<ExtenderProcess> {
    const [port, http] = (await freePorts(2)) as [number, number];
    const options = ['--kubeconfig', kubeconfig, '--listen', `127.0.0.1:${port}`, '--http', `127.0.0.1:${http}`, '--log-level', 'warn'];
    const child = spawn(process.execPath, [PROGRAM, 'extender', ...options], { stdio: ['ignore', 'ignore', 'inherit'] });
    const extender = new ExtenderProcess(port, http, child);
    while (!(await extender.#ready())) await sleep(20);
    return extender;
  }

  /** The answer as text, so that who measures can stop the clock before it is parsed. */
  async ask(verb: string, body: string): Promise<string> {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const asked = request({ port: this.port, path: `/${verb}`, method: 'POST', headers, agent: this.#agent }, (answer) =>
        text(answer).then(resolve, reject),
      );
      asked.on('error', reject).end(body);
    });
  }

  /** MiB that it had in memory at most. */
  get peakMemory(): number {
    const [, kib] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.child.pid}/status`, 'utf8')) ?? [];
    return Number(kib) / 1024;
  }

  async stop(): Promise<void> {
    const exited = new Promise((resolve) => this.child.once('exit', resolve));
    this.#agent.destroy();
    this.child.kill();
    await exited;
  }

  async #ready(): Promise<boolean> {
    if (this.child.exitCode !== null) throw new Error('the extender has ended');
    const answer = await fetch(`http://127.0.0.1:${this.httpPort}/readyz`).catch(() => undefined);
    await answer?.text();
    return answer?.status === 200;
  }
}
