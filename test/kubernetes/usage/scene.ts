import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RedisLedger } from '@nvidia-virtual/ledger';
import { RedisServer } from '@nvidia-virtual/ledger/testing/redis-server';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { ControlPlane } from '../control-plane.js';
import type { Daemon } from '../daemon.js';
import { freePorts, hostAddress } from '../ports.js';
import { nodeObject, podObject, RIGHTS, registration, snapshotOf } from './objects.js';

const PROGRAM = path.join(REPOSITORY, 'usage-api', 'bin', 'usage-api.js');
/** Good answers in succession after which both replicas are taken to give them. */
const ENOUGH_ANSWERS = 10;

interface KubectlResult {
  readonly status: number | null;
  readonly output: string;
  readonly errors: string;
}

/** An API server, a Redis, and two replicas of the usage API between them. */
export class UsageScene {
  readonly directory = mkdtempSync(path.join(tmpdir(), 'usage-scene-'));
  readonly replicas: Daemon[] = [];
  #ports: number[] = [];
  #granted = 0;
  #publishing: NodeJS.Timeout | undefined;

  private constructor(
    readonly plane: ControlPlane,
    readonly redis: RedisServer,
    readonly ledger: RedisLedger,
    /** Address of the replicas. */
    readonly host: string,
  ) {}

  /** With an IPv6 address, all parts of the scene speak IPv6 with each other. */
  static async start(host = hostAddress()): Promise<UsageScene> {
    const [plane, redis] = await Promise.all(
      isIPv6(host)
        ? [
            ControlPlane.start({ address: '::1' }),
            RedisServer.start({ tcp: true, args: ['--bind', '127.0.0.1', '::1'] }),
          ]
        : [ControlPlane.start(), RedisServer.start()],
    );
    const ledger = new RedisLedger({
      redis: redis.place,
      writer: { node: 'node-1', owner: 'scene', claimGpus: false },
    });
    const scene = new UsageScene(plane, redis, ledger, host);
    try {
      await scene.#start();
      return scene;
    } catch (error) {
      const logs = scene.replicas.map((replica) => replica.lastLines()).join('\n');
      await scene.stop();
      throw new Error(`${(error as Error).message}\n${logs}`);
    }
  }

  async stop(): Promise<void> {
    clearInterval(this.#publishing);
    await this.ledger.close();
    await this.plane.stop();
    await this.redis.remove();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Runs kubectl as the user of this kubeconfig; the administrator by default. */
  async kubectl(
    args: readonly string[],
    { kubeconfig = this.plane.adminKubeconfig, stdin = '' } = {},
  ): Promise<KubectlResult> {
    return run(kubernetesTool('kubectl'), ['--kubeconfig', kubeconfig, ...args], stdin);
  }

  /** @throws Error if kubectl refuses */
  async apply(...objects: object[]): Promise<void> {
    const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const { status, errors } = await this.kubectl(['apply', '-f', '-'], { stdin });
    if (status !== 0) throw new Error(`kubectl apply failed: ${errors}`);
  }

  /** Sets the status of an object, as a kubelet or a scheduler would. */
  async patchStatus(args: readonly string[], status: object): Promise<void> {
    const all = [
      'patch',
      ...args,
      '--subresource',
      'status',
      '--type',
      'merge',
      '-p',
      JSON.stringify({ status }),
    ];
    const { status: ended, errors } = await this.kubectl(all);
    if (ended !== 0) throw new Error(`kubectl ${all.join(' ')} failed: ${errors}`);
  }

  /** Reads until the value fulfils the condition. @returns the value */
  async eventually<T>(read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
    let value: T | undefined;
    await eventually(async () => {
      value = await read();
      if (!holds(value)) throw new Error(`the last value was ${JSON.stringify(value)}`);
    });
    return value as T;
  }

  get addresses(): string[] {
    const host = isIPv6(this.host) ? `[${this.host}]` : this.host;
    return this.#ports.map((port) => `https://${host}:${port}`);
  }

  async #start(): Promise<void> {
    await this.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'nvidia-virtual' } });
    await this.apply(...RIGHTS);
    this.#ports = await freePorts(2);
    await this.apply(...registration(this.host, this.#ports));
    for (const [index, port] of this.#ports.entries())
      this.replicas.push(this.#startReplica(index, port));
    await this.#populate();
    await this.eventually(
      () =>
        this.kubectl([
          'get',
          'apiservice',
          'v1alpha1.usage.nvidia-virtual.io',
          '-o',
          'jsonpath={.status.conditions[0].status}',
        ]),
      ({ output }) => output === 'True',
    );
    // The API server asks a replica by chance.
    let answers = 0;
    await this.eventually(
      () =>
        this.kubectl([
          'get',
          'podgpuusages',
          '-A',
          '-o',
          'jsonpath={.items[*].containers[*].time.used}',
        ]),
      ({ status, output }) => {
        answers = status === 0 && output !== '' ? answers + 1 : 0;
        return answers === ENOUGH_ANSWERS;
      },
    );
  }

  #startReplica(index: number, port: number): Daemon {
    const kubeconfig = this.plane.kubeconfig('usage-api');
    const address = isIPv6(this.host) ? `[${this.host}]:${port}` : `:${port}`;
    const listen = ['--listen', address, '--http', path.join(this.directory, `${index}.sock`)];
    const ledger = [
      '--ledger-url',
      isIPv6(this.host) ? this.redis.url.replace('127.0.0.1', '[::1]') : this.redis.url,
      '--ledger-maximum-age',
      '60s',
      '--interval',
      '500ms',
      '--resting-interval',
      '1s',
    ];
    const args = [PROGRAM, '--kubeconfig', kubeconfig, ...listen, ...ledger];
    return this.plane.startDaemon(`usage-api-${index}`, { program: process.execPath, args });
  }

  /** A node with two GPUs; in team-a one busy, one idle and one waiting pod; one pod in team-b. */
  async #populate(): Promise<void> {
    await this.apply(
      ...['team-a', 'team-b'].map((name) => ({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name },
      })),
      nodeObject(),
    );
    await this.patchStatus(['node', 'node-1'], {
      capacity: { 'nvidia-virtual/gpu': '20' },
      allocatable: { 'nvidia-virtual/gpu': '20' },
    });
    await this.apply(
      podObject({
        namespace: 'team-a',
        name: 'train',
        slots: 4,
        node: 'node-1',
        labels: { app: 'train' },
      }),
      podObject({
        namespace: 'team-a',
        name: 'idle',
        slots: 2,
        node: 'node-1',
        labels: { app: 'serve' },
      }),
      podObject({
        namespace: 'team-a',
        name: 'greedy',
        slots: 30,
        annotations: { 'nvidia-virtual/memory': '1Gi' },
      }),
      podObject({ namespace: 'team-b', name: 'secret', slots: 1, node: 'node-1' }),
    );
    for (const [namespace, name] of [
      ['team-a', 'train'],
      ['team-a', 'idle'],
      ['team-b', 'secret'],
    ] as const)
      await this.patchStatus(['pod', '-n', namespace, name], {
        phase: 'Running',
        containerStatuses: [
          {
            name: 'main',
            image: 'x',
            imageID: '',
            ready: true,
            restartCount: 0,
            state: { running: {} },
          },
        ],
      });
    const message = '0/1 nodes are available: 1 Insufficient nvidia-virtual/gpu.';
    await this.patchStatus(['pod', '-n', 'team-a', 'greedy'], {
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
    });
    await this.#publish();
  }

  /** Publishes the node's snapshots: a quarter of the GPU's time goes to `train`. */
  async #publish(): Promise<void> {
    const { output } = await this.kubectl([
      'get',
      'pods',
      '-A',
      '-o',
      'jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}',
    ]);
    const uids = Object.fromEntries(
      output
        .trim()
        .split(' ')
        .map((pair) => pair.split('=') as [string, string]),
    );
    const begin = Date.now();
    this.#publishing = setInterval(() => {
      this.#granted = ((Date.now() - begin) / 4) * 1e6;
      this.ledger.publish(snapshotOf(uids, this.#granted));
    }, 250);
  }
}

export async function run(
  program: string,
  args: readonly string[],
  stdin = '',
  env: NodeJS.ProcessEnv = process.env,
): Promise<KubectlResult> {
  const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  const result = { output: '', errors: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (result.output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (result.errors += text));
  child.stdin.on('error', () => undefined).end(stdin);
  const status = await new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('close', resolve),
  );
  return { status, ...result };
}
