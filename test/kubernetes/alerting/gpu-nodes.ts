import { spawn } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { NodeUnderTest } from '@nvidia-virtual/device-plugin/testing/node-under-test';
import type { ProcessUnderTest } from '@nvidia-virtual/device-plugin/testing/process-under-test';
import { locateInstallation } from '@nvidia-virtual/gpu-proxy/host/installation';
import { CommandUnderTest, Place } from '@nvidia-virtual/gpu-proxy/testing/command-under-test';
import { cudaProgram } from '@nvidia-virtual/gpu-proxy/testing/cuda-program';
import { killArbiter } from '@nvidia-virtual/gpu-proxy/testing/kill-arbiter';
import { makeLyingBuild } from '@nvidia-virtual/gpu-proxy/testing/lying-worker';
import { arbiterSocketIn } from '@nvidia-virtual/node-state/paths';
import { findProcess } from '@nvidia-virtual/service/process-table';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { workersWhere } from '../../processes.js';

const MIB = 2 ** 20;
const QUOTA = 64 * MIB;

/** A node with device plugin and gpu-proxy; the test is its kubelet. */
export class PluginNode {
  readonly #node: NodeUnderTest;
  #proxy!: ProcessUnderTest;

  constructor(name: string) {
    this.#node = new NodeUnderTest({ name });
  }

  /** @param ports of the metrics of gpu-proxy and of the device plugin */
  async start([proxy, plugin]: readonly [number, number], redis: string): Promise<this> {
    await this.#node.kubelet.start();
    const metrics = (port: number) => ['--http', `127.0.0.1:${port}`];
    this.#node.startPlugin([...metrics(plugin), '--proxy-patience', '1s']);
    this.#proxy = await this.#node.startProxy({
      args: [...metrics(proxy), '--ledger-url', redis],
    });
    await until(() => this.#node.kubelet.healthy.length === 10, 'the node offers slots');
    return this;
  }

  loseGpu(): void {
    this.#node.fail(0);
  }

  async killProxy(): Promise<void> {
    await this.#proxy.end('SIGKILL');
  }

  /** A program that has the socket of a container, but is in no pod: it gets no GPU. */
  async refuseProgram(slot: number): Promise<void> {
    const id = this.#node.kubelet.devices[slot]?.ID ?? '';
    const { mounts } = await this.#node.kubelet.allocate([id]);
    const client = mounts.find(({ containerPath }) => containerPath === '/run/nvidia-virtual');
    const [python = '', ...args] = cudaProgram('say(result("cuInit", 0))');
    const program = spawn(python, args, {
      stdio: 'ignore',
      env: {
        PATH: process.env['PATH'],
        LD_LIBRARY_PATH: locateInstallation().interposerDirectory,
        NVIDIA_VIRTUAL_SOCKET: path.join(client?.hostPath ?? '', 'gpu.sock'),
      },
    });
    await new Promise((resolve) => program.once('close', resolve));
  }

  remove(): Promise<void> {
    return this.#node.remove();
  }
}

/** A node with gpu-proxy alone. */
export class ProxyNode {
  readonly #place = new Place();
  readonly #name: string;
  readonly #commands: CommandUnderTest[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  /** @param lies whether the workers of a small allocation hold more memory than they say */
  async start(port: number, redis: string, { lies = false } = {}): Promise<this> {
    const build = path.join(this.#place.directory, 'build');
    writeFileSync(this.#xids, '');
    const env = {
      NVIDIA_VIRTUAL_SIMULATED_XIDS: this.#xids,
      ...(lies && {
        NVIDIA_VIRTUAL_BUILD: makeLyingBuild(build, { quota: QUOTA, taken: 4096 * MIB }),
      }),
    };
    const node = ['--node', this.#name, '--state', this.#state, '--backend', 'simulated'];
    const places = ['--http', `127.0.0.1:${port}`, '--ledger-url', redis];
    const proxy = new CommandUnderTest(this.#place, ['serve', ...node, ...places], env);
    this.#commands.push(proxy);
    await proxy.printed('"msg":"serving"');
    return this;
  }

  /** Starts a program in a small allocation of its own. */
  run(body: string): CommandUnderTest {
    const where = ['--state', this.#state, '--memory', `${QUOTA / MIB}MiB`];
    const program = new CommandUnderTest(this.#place, [
      'run',
      ...where,
      '--',
      ...cudaProgram(body),
    ]);
    this.#commands.push(program);
    return program;
  }

  /** A program that has its GPU until the end of the test. */
  async hold(): Promise<void> {
    await this.run('start(); say("ready"); sys.stdin.readline()').printed('ready');
  }

  async killWorker(): Promise<void> {
    await this.hold();
    const [proxy] = this.#commands;
    const workers = workersWhere((pid) => proxy?.workers().includes(pid) ?? false);
    for (const worker of workers) process.kill(worker, 'SIGKILL');
  }

  /** The driver reports a memory error of the GPU. */
  reportXid(): void {
    appendFileSync(this.#xids, '0 48\n');
  }

  killArbiter(): void {
    const arbiter = findProcess('--socket', arbiterSocketIn(this.#state));
    if (!arbiter) throw new Error(`node ${this.#name} has no arbiter`);
    process.kill(arbiter.pid, 'SIGKILL');
  }

  async remove(): Promise<void> {
    for (const { process: command } of this.#commands) command.kill('SIGKILL');
    await Promise.all(this.#commands.map((command) => command.end()));
    killArbiter(this.#state);
    this.#place.remove();
  }

  get #xids(): string {
    return path.join(this.#place.directory, 'xids');
  }

  get #state(): string {
    return path.join(this.#place.directory, 'state');
  }
}
