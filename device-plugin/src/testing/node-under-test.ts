import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { locateInstallation } from '@nvidia-virtual/gpu-proxy/host/installation';
import { killArbiter } from '@nvidia-virtual/gpu-proxy/testing/kill-arbiter';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { KubeletUnderTest } from './kubelet-under-test.js';
import { ProcessUnderTest } from './process-under-test.js';

const REPOSITORY = path.resolve(import.meta.dirname, '../../..');
const PLUGIN = path.join(REPOSITORY, 'device-plugin/bin/device-plugin.js');
const CONTAINER_FILES = path.join(REPOSITORY, 'device-plugin/container');
const PROXY = path.join(REPOSITORY, 'gpu-proxy/bin/gpu-proxy.js');

/**
 * A node in a temporary directory. The test is its kubelet, plugin and gpu-proxy are real
 * processes, and the GPUs are simulated.
 */
export class NodeUnderTest {
  readonly directory = mkdtempSync(path.join(tmpdir(), 'node-'));
  readonly name: string;
  readonly state = path.join(this.directory, 'state');
  readonly installation: string;
  readonly versions = path.join(this.directory, 'versions');
  readonly kubelet: KubeletUnderTest;
  readonly #failures = path.join(this.directory, 'failures');
  readonly #processes: ProcessUnderTest[] = [];

  /**
   * @param options.podResources false if the test serves the pod resources API elsewhere
   * @param options.installation by default the release build of this repository
   */
  constructor({
    podResources = true,
    installation = undefined as string | undefined,
    name = 'node-1',
  } = {}) {
    this.name = name;
    this.kubelet = new KubeletUnderTest(path.join(this.directory, 'kubelet'), { podResources });
    this.installation = installation ?? path.join(this.directory, 'installation');
    if (installation === undefined) makeInstallation(this.installation);
    this.fail();
  }

  /** Makes exactly these GPUs, by index, fail. */
  fail(...gpus: number[]): void {
    writeFileSync(this.#failures, gpus.join(' '));
  }

  /** @param injected path of a mount that a container runtime added to the container */
  startPlugin(
    args: readonly string[] = [],
    env: NodeJS.ProcessEnv = {},
    injected?: string,
  ): ProcessUnderTest {
    const places = [
      '--state',
      this.state,
      '--installation',
      this.installation,
      '--versions',
      this.versions,
    ];
    const command = [
      PLUGIN,
      '--node',
      this.name,
      '--kubelet-root',
      this.kubelet.root,
      ...places,
      ...args,
    ];
    return this.#start(
      injected === undefined
        ? [process.execPath, ...command]
        : this.#inContainer(injected, command),
      env,
    );
  }

  /** @returns the process, once it serves */
  async startProxy({
    gpus = 1,
    only = [] as readonly string[],
    slots = 10,
    slotMemory = undefined as string | undefined,
    backend = 'simulated',
    placement = 'none',
    kubeconfig = this.#unreachable(),
    args = [] as readonly string[],
  } = {}): Promise<ProcessUnderTest> {
    const kubernetes = [
      '--kubernetes-enabled',
      'true',
      '--kubernetes-kubelet-root',
      this.kubelet.root,
      '--slots-per-gpu',
      String(slots),
      ...(slotMemory === undefined ? [] : ['--slot-memory', slotMemory]),
    ];
    const selected = [
      ...only.flatMap((gpu) => ['--gpu', gpu]),
      '--kubernetes-health-interval',
      '1s',
    ];
    const options = [
      '--node',
      this.name,
      '--state',
      this.state,
      '--backend',
      backend,
      ...selected,
      ...kubernetes,
      ...args,
    ];
    const places = {
      NVIDIA_VIRTUAL_KUBERNETES_VERSIONS: this.versions,
      NVIDIA_VIRTUAL_KUBERNETES_PLACEMENT: placement,
    };
    const simulated = { GPUS: String(gpus), MEMORY: '140GiB', FAILURES: this.#failures };
    const machine = Object.fromEntries(
      Object.entries(simulated).map(([name, value]) => [`NVIDIA_VIRTUAL_SIMULATED_${name}`, value]),
    );
    const proxy = this.#start([process.execPath, PROXY, 'serve', ...options], {
      ...machine,
      ...places,
      KUBECONFIG: kubeconfig,
    });
    await eventually(() => {
      if (!proxy.said('serving')) throw new Error(`gpu-proxy does not serve: ${proxy.output}`);
    });
    return proxy;
  }

  async remove(): Promise<void> {
    this.kubelet.stop();
    await Promise.all(this.#processes.map((one) => one.end()));
    killArbiter(this.state);
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** A kubeconfig of an unreachable API server. */
  #unreachable(): string {
    const file = path.join(this.directory, 'unreachable.kubeconfig');
    const clusters = [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }];
    const contexts = [{ name: 'c', context: { cluster: 'c', user: 'u' } }];
    writeFileSync(
      file,
      JSON.stringify({
        clusters,
        contexts,
        users: [{ name: 'u', user: {} }],
        'current-context': 'c',
      }),
    );
    return file;
  }

  /** Runs the command in a mount namespace, as in a container. */
  #inContainer(injected: string, command: readonly string[]): string[] {
    const target = path.join(this.directory, injected);
    writeFileSync(target, '');
    const namespaces =
      process.getuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount'];
    return [
      'unshare',
      ...namespaces,
      'sh',
      '-c',
      `mount --bind /bin/true ${target} && exec "$@"`,
      'sh',
      process.execPath,
      ...command,
    ];
  }

  #start(command: readonly string[], env: NodeJS.ProcessEnv): ProcessUnderTest {
    const started = new ProcessUnderTest(command, { TMPDIR: this.directory, ...env });
    this.#processes.push(started);
    return started;
  }
}

/** Copies the files of the image's /opt/nvidia-virtual from the build. */
function makeInstallation(directory: string): void {
  const { interposerDirectory, worker, arbiter, simulatedDriver } = locateInstallation();
  mkdirSync(path.join(directory, 'lib'), { recursive: true });
  for (const library of ['libcuda.so.1', 'libnvidia-ml.so.1'])
    cpSync(path.join(interposerDirectory, library), path.join(directory, 'lib', library));
  cpSync(CONTAINER_FILES, path.join(directory, 'container'), { recursive: true });
  cpSync(
    path.join(interposerDirectory, 'loader', 'libcuda.so'),
    path.join(directory, 'container', 'libcuda.so'),
  );
  const simulatedNvml = path.join(path.dirname(simulatedDriver), 'libsimulator-nvml.so.1');
  for (const file of [worker, arbiter, simulatedDriver, simulatedNvml])
    cpSync(file, path.join(directory, path.basename(file)), { dereference: true });
}
