import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import {
  CoreV1Api,
  KubeConfig,
  type V1Container,
  type V1ObjectMeta,
  type V1Pod,
} from '@kubernetes/client-node';
import { locateInstallation } from '@nvidia-virtual/gpu-proxy/host/installation';
import { askNode } from '@nvidia-virtual/gpu-proxy/testing/ask-node';
import { CommandUnderTest, Place } from '@nvidia-virtual/gpu-proxy/testing/command-under-test';
import { cudaProgram } from '@nvidia-virtual/gpu-proxy/testing/cuda-program';
import { killArbiter } from '@nvidia-virtual/gpu-proxy/testing/kill-arbiter';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import type {
  AllocationMessage,
  GpuMessage,
  PlacedPodMessage,
} from '@nvidia-virtual/node-state/admin/messages';
import { prepareGrant } from '@nvidia-virtual/node-state/grant';
import { arbiterSocketIn } from '@nvidia-virtual/node-state/paths';
import { findProcess } from '@nvidia-virtual/service/process-table';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { ControlPlane } from '../control-plane.js';
import { KubeletResources } from './kubelet-resources.js';
import { type CgroupDriver, PodCgroups } from './pod-cgroup.js';

/** Its work on the GPU ends when it reads a line. */
export const STUBBORN = `
start()
block = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: sys.stdin.readline())
must("cuLaunchHostFunc", None, block, None)
say("busy")
must("cuCtxSynchronize")
say("then", alloc(MiB))
sys.stdin.readline()`;

export const NODE = 'node-1';
export const ASKING = 'say("init", result("cuInit", 0))';
/** Allocates memory, prints the total, and waits for the end of its input. */
export const HOLDING =
  'start(); say("got", alloc(100 * MiB), memory()[1] // MiB); sys.stdin.readline(); ' +
  'say("then", alloc(MiB))';

interface PodOptions {
  readonly annotations?: Record<string, string>;
  readonly slots?: number;
  readonly initSlots?: number;
  readonly priorityClassName?: string;
  /** The kubelet's UID of a static pod for which this one is the mirror pod. */
  readonly shows?: string;
}

/**
 * A program in a container of a pod: a real process in the pod's cgroup, with the mounts of
 * Allocate.
 */
class PodProgram {
  readonly process: ChildProcessWithoutNullStreams;
  stdout = '';
  stderr = '';
  /** Resolves when it has ended and all its output was read. */
  readonly #closed: Promise<unknown>;

  constructor(
    processFiles: readonly string[],
    socket: string,
    body: string,
    wrapper: readonly string[] = [],
  ) {
    const [python, ...args] = cudaProgram(body);
    const words = [...wrapper, python as string, ...args];
    const script = `for file in ${processFiles.join(' ')}; do echo $$ > $file || exit 9; done; \
exec "$@"`;
    this.process = spawn('sh', ['-c', script, 'sh', ...words], {
      env: {
        PATH: process.env['PATH'],
        LD_LIBRARY_PATH: locateInstallation().interposerDirectory,
        NVIDIA_VIRTUAL_SOCKET: socket,
        CUDA_LOG_FILE: 'stderr',
      },
    });
    this.process.stdin.on('error', () => {}); // it may have ended before
    this.process.stdout.on('data', (data: Buffer) => {
      this.stdout += data;
    });
    this.process.stderr.on('data', (data: Buffer) => {
      this.stderr += data;
    });
    this.#closed = once(this.process, 'close');
  }

  async printed(text: string): Promise<void> {
    while (!this.stdout.includes(text))
      await Promise.race([once(this.process.stdout, 'data'), this.#mustNotEnd(text)]);
  }

  async #mustNotEnd(text: string): Promise<void> {
    await this.#closed;
    if (!this.stdout.includes(text))
      throw new Error(`it ended without ${text}: ${this.stdout}${this.stderr}`);
  }

  /** Lets it run to its end. */
  async finish(): Promise<string> {
    if (this.process.stdin.writable) this.process.stdin.end('\n');
    await this.#closed;
    return this.stdout;
  }
}

/**
 * One node of Kubernetes: real gpu-proxy, real API server, real processes in cgroups. The test
 * replaces the kubelet.
 */
export class BindingScene {
  readonly directory = mkdtempSync(path.join(tmpdir(), 'binding-'));
  readonly state = path.join(this.directory, 'state');
  readonly kubeletRoot = path.join(this.directory, 'kubelet');
  readonly kubelet = new KubeletResources(this.kubeletRoot);
  readonly cgroups: PodCgroups;
  readonly api: CoreV1Api;
  readonly plane: ControlPlane;
  readonly #place = new Place();
  readonly #programs: PodProgram[] = [];
  proxy!: CommandUnderTest;

  constructor(name: string, plane: ControlPlane, driver: CgroupDriver = 'cgroupfs') {
    this.plane = plane;
    this.cgroups = new PodCgroups(name, driver);
    const config = new KubeConfig();
    config.loadFromFile(plane.adminKubeconfig);
    this.api = config.makeApiClient(CoreV1Api);
  }

  async serve(env: NodeJS.ProcessEnv = {}, ...flags: string[]): Promise<void> {
    const kubernetes = [
      '--kubernetes-enabled',
      'true',
      '--kubernetes-kubelet-root',
      this.kubeletRoot,
    ];
    const args = [
      'serve',
      '--state',
      this.state,
      '--backend',
      'simulated',
      '--node',
      NODE,
      ...kubernetes,
      ...flags,
    ];
    this.proxy = new CommandUnderTest(this.#place, args, {
      KUBECONFIG: this.plane.adminKubeconfig,
      ...env,
    });
    await this.proxy.printed('"msg":"serving"');
  }

  async kill(): Promise<void> {
    this.proxy.process.kill('SIGKILL');
    await this.proxy.end();
  }

  /** What the scheduler and the kubelet have done before a container starts. */
  async createPod(name: string, options: PodOptions = {}): Promise<V1Pod> {
    const { annotations = {}, slots = 1, initSlots = 0, priorityClassName, shows } = options;
    const body: V1Pod = {
      metadata: { name, annotations, ...(shows !== undefined && mirrorOf(shows)) },
      spec: {
        nodeName: NODE,
        containers: [container('main', slots)],
        ...(initSlots > 0 && { initContainers: [container('prepare', initSlots)] }),
        ...(priorityClassName !== undefined && { priorityClassName }),
      },
    };
    return this.api.createNamespacedPod({ namespace: 'default', body });
  }

  /** @returns the socket in the directory that Allocate gives to the container */
  allocate(slots: readonly string[], build?: string): string {
    return path.join(prepareGrant(this.state, slots, build).clientDirectory, 'gpu.sock');
  }

  /**
   * A pod, and its container to which the kubelet gave the slots. Its program has not started yet.
   */
  async started(
    name: string,
    slots: readonly string[],
    options: PodOptions = {},
  ): Promise<{ pod: V1Pod; socket: string; id: string }> {
    const pod = await this.createPod(name, { slots: slots.length, ...options });
    this.kubelet.give(name, 'main', slots);
    const socket = this.allocate(slots);
    return { pod, socket, id: idOf(socket) };
  }

  /** Waits until gpu-proxy has acted on the kubelet's answer. */
  async lookedAgain(): Promise<void> {
    const before = this.kubelet.asked;
    await eventually(() => expect(this.kubelet.asked).toBeGreaterThan(before + 1));
  }

  /** Changes fields of a grant, such as its creation time. */
  changeGrant(id: string, changes: object): void {
    const file = path.join(this.state, 'allocations', id, 'grant.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...changes }));
  }

  /** Installs a build on the host, as the device plugin does. */
  installWorker(directory: string): void {
    mkdirSync(directory, { recursive: true });
    copyFileSync(locateInstallation().worker, path.join(directory, 'nvidia-virtual-worker'));
  }

  /** A program in a new container of the pod. */
  run(
    pod: V1Pod,
    socket: string,
    body: string,
    wrapper: readonly string[] = [],
  ): PodProgram & { readonly containerId: string } {
    const { id, processFiles } = this.cgroups.container(pod.metadata?.uid as string);
    const program = Object.assign(new PodProgram(processFiles, socket, body, wrapper), {
      containerId: id,
    });
    this.#programs.push(program);
    return program;
  }

  /** What a program that requests a GPU got, with its messages. */
  async ask(pod: V1Pod, socket: string): Promise<[stdout: string, stderr: string]> {
    const program = this.run(pod, socket, ASKING);
    return [await program.finish(), program.stderr];
  }

  /** A program in an existing container, or in none. */
  runIn(processFiles: readonly string[], socket: string, body: string): PodProgram {
    const program = new PodProgram(processFiles, socket, body);
    this.#programs.push(program);
    return program;
  }

  /** Python with the name of a sandbox's program: a sandbox is identified only by /proc/PID/exe. */
  sandboxProgram(name: string): string[] {
    const file = path.join(this.directory, name);
    copyFileSync(realpathSync('/usr/bin/python3'), file);
    return ['sh', '-c', `shift; exec ${file} "$@"`, 'sh'];
  }

  /**
   * A process as after `su -` in a container: another user, without our variables, with the socket
   * at its usual path.
   */
  loginShell(socket: string): string[] {
    const mounts =
      `mkdir -p /run/nvidia-virtual && mount --bind ` +
      `${path.dirname(socket)} /run/nvidia-virtual`;
    const clean = [
      'env',
      '-i',
      'PATH=/usr/bin:/bin',
      `LD_LIBRARY_PATH=${locateInstallation().interposerDirectory}`,
    ];
    const other = ['setpriv', '--reuid', '12345', '--clear-groups'];
    return [
      'unshare',
      '--mount',
      '--',
      'sh',
      '-c',
      `${mounts}; exec "$@"`,
      'sh',
      ...clean,
      ...other,
    ];
  }

  /** The next proxy finds the state directory as after a reboot. */
  pretendReboot(): void {
    writeFileSync(path.join(this.state, 'boot'), 'another');
  }

  /** As the kubelet does a moment after a container has started. */
  async tellStarted(pod: V1Pod, name: string, containerId: string, init = false): Promise<void> {
    const status = {
      name,
      containerID: `containerd://${containerId}`,
      image: 'any',
      imageID: '',
      ready: true,
      restartCount: 0,
    };
    const statuses = [{ ...status, state: { running: {} } }];
    await this.patchStatus(
      pod,
      init ? { initContainerStatuses: statuses } : { containerStatuses: statuses },
    );
  }

  async patchStatus(pod: V1Pod, changes: object): Promise<void> {
    const name = pod.metadata?.name as string;
    const now = await this.api.readNamespacedPod({ name, namespace: 'default' });
    await this.api.replaceNamespacedPodStatus({
      name,
      namespace: 'default',
      body: { ...now, status: { ...now.status, ...changes } },
    });
  }

  async deletePod(name: string): Promise<void> {
    await this.api.deleteNamespacedPod({ name, namespace: 'default', gracePeriodSeconds: 0 });
  }

  async allocations(): Promise<readonly AllocationMessage[]> {
    return (await askNode(this.state, 'listAllocations', {})).allocations;
  }

  async gpus(): Promise<readonly GpuMessage[]> {
    return (await askNode(this.state, 'listGpus', {})).gpus;
  }

  /** What the scheduler learns of pods that it did not place. */
  async placed(): Promise<readonly PlacedPodMessage[]> {
    return (await askNode(this.state, 'listGpus', {})).placed;
  }

  /** Drains the allocation: it accepts no new sessions. */
  async drain(id: string): Promise<void> {
    await askNode(this.state, 'drainAllocation', { id });
  }

  async call(
    name: 'suspendAllocation' | 'resumeAllocation',
    id: string,
  ): Promise<AllocationMessage> {
    return askNode(this.state, name, { id });
  }

  async warmWorkerReady(): Promise<void> {
    await eventually(async () => {
      const [gpu] = await this.gpus();
      if (gpu?.warmWorkersReady !== 1) throw new Error('no worker is warm');
    });
  }

  arbiterPid(): number {
    const found = findProcess('--socket', arbiterSocketIn(this.state));
    if (!found) throw new Error('there is no arbiter');
    return found.pid;
  }

  /** Requests this path on the socket. */
  get(socketPath: string, served: string): Promise<string> {
    return new Promise((resolve, reject) => {
      get({ socketPath, path: served }, (answer) => text(answer).then(resolve, reject)).on(
        'error',
        reject,
      );
    });
  }

  /** Reasons and messages of a pod's events. */
  async events(pod: string): Promise<[string, string][]> {
    const { items } = await this.api.listNamespacedEvent({
      namespace: 'default',
      fieldSelector: `involvedObject.name=${pod}`,
    });
    return items.map(({ reason = '', message = '' }) => [reason, message]);
  }

  /** Ids of the existing directories. */
  directories(): string[] {
    return readdirSync(path.join(this.state, 'allocations'));
  }

  specification(id: string): Record<string, unknown> {
    return JSON.parse(readFileSync(this.#specificationFile(id), 'utf8'));
  }

  /** Changes it as another build would have written it. No gpu-proxy may be running. */
  rewrite(
    id: string,
    change: (specification: Record<string, unknown>) => Record<string, unknown>,
  ): void {
    writeFileSync(this.#specificationFile(id), JSON.stringify(change(this.specification(id))));
  }

  #specificationFile(id: string): string {
    return path.join(this.state, 'allocations', id, 'allocation.json');
  }

  async end(): Promise<void> {
    for (const { process: program } of this.#programs) program.kill('SIGKILL');
    this.proxy?.process.kill('SIGTERM');
    await this.proxy?.end();
    killArbiter(this.state);
    this.kubelet.stop();
    await this.cgroups.remove();
    rmSync(this.directory, { recursive: true, force: true });
    this.#place.remove();
    const { items } = await this.api.listNamespacedPod({ namespace: 'default' });
    for (const { metadata } of items) await this.deletePod(metadata?.name as string);
  }
}

/** A control plane for the tests of a file, and a new node for each test, which `use` receives. */
export function bindingSuite(name: string, use: (scene: BindingScene) => void): void {
  let plane: ControlPlane | undefined;
  let scene: BindingScene | undefined;
  beforeAll(async () => {
    plane = await ControlPlane.start();
  });
  beforeEach(async () => {
    scene = new BindingScene(name, plane as ControlPlane);
    use(scene);
    await scene.kubelet.start();
  });
  afterEach(() => scene?.end());
  afterAll(() => plane?.stop());
}

/** Of the allocation with this socket. */
export function idOf(socket: string): string {
  return path.basename(path.dirname(path.dirname(socket)));
}

/** The mirror pod of a static pod, as the kubelet creates it. */
function mirrorOf(uid: string): V1ObjectMeta {
  const annotations = Object.fromEntries(
    Object.entries({ hash: uid, mirror: uid, source: 'file' }).map(([key, value]) => [
      `kubernetes.io/config.${key}`,
      value,
    ]),
  );
  return {
    annotations,
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: NODE, uid: 'any', controller: true }],
  };
}

function container(name: string, slots: number): V1Container {
  const limits = slots > 0 ? { [RESOURCE]: String(slots) } : {};
  return { name, image: 'any', resources: { limits } };
}
