import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ContainerAllocateResponse } from '@nvidia-virtual/device-plugin/protocol';
import { buildah } from '@nvidia-virtual/toolchain/images/buildah';
import { type Outcome, runChild } from '../child.js';

const SECONDS = 60;
/** As containerd grants by default, without those that a sandboxed machine may lack. */
const CAPABILITIES = [
  ...['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_FSETID', 'CAP_KILL', 'CAP_SETGID'],
  ...['CAP_SETUID', 'CAP_SETPCAP', 'CAP_NET_BIND_SERVICE', 'CAP_SYS_CHROOT', 'CAP_AUDIT_WRITE'],
];
const NAMESPACES = ['pid', 'ipc', 'uts', 'mount', 'network'];

interface ImageConfiguration {
  readonly Env?: readonly string[];
  readonly User?: string;
}

interface ImageInspection {
  readonly OCIv1: { readonly config?: ImageConfiguration };
}

interface ContainerOptions {
  readonly image: string;
  /** The kubelet's answer from Allocate. */
  readonly answer: ContainerAllocateResponse;
  readonly readOnlyRoot: boolean;
  readonly directory: string;
}

/** A container of an image, run by runc as containerd's CRI plugin does. */
export class ImageContainer {
  static #made = 0;
  readonly #name = `nvidia-virtual-test-${process.pid}-${++ImageContainer.#made}`;
  readonly #options: ContainerOptions;

  private constructor(options: ContainerOptions) {
    this.#options = options;
  }

  /** Mounts a writable layer of the image. */
  static async create(options: ContainerOptions): Promise<ImageContainer> {
    const container = new ImageContainer(options);
    await buildah('container could not be created', [
      'from',
      '--pull-never',
      '--name',
      container.#name,
      options.image,
    ]);
    return container;
  }

  /** Runs a command as its first process. */
  async run(command: readonly string[]): Promise<Outcome> {
    const bundle = path.join(this.#options.directory, this.#name);
    mkdirSync(bundle, { recursive: true });
    const mounted = await buildah('container could not be mounted', ['mount', this.#name]);
    const configuration = await this.#configuration();
    const specification = this.#specification(command, mounted.trim(), configuration);
    writeFileSync(path.join(bundle, 'config.json'), JSON.stringify(specification));
    const state = path.join(this.#options.directory, 'runc');
    const args = ['--root', state, 'run', '--bundle', bundle, this.#name];
    return runChild('runc', args, { cwd: bundle, env: process.env, seconds: SECONDS });
  }

  async remove(): Promise<void> {
    await buildah('container could not be removed', ['rm', this.#name]);
  }

  async #configuration(): Promise<ImageConfiguration> {
    const args = ['inspect', '--type', 'image', this.#options.image];
    const image = JSON.parse(await buildah('image could not be read', args)) as ImageInspection;
    return image.OCIv1.config ?? {};
  }

  #specification(args: readonly string[], root: string, { Env = [], User }: ImageConfiguration) {
    const { answer, readOnlyRoot } = this.#options;
    const [uid = 0, gid = 0] = (User || '0:0').split(':').map(Number);
    // As CRI runtimes do: the variables of Allocate replace those of the image.
    const names = new Set(Object.keys(answer.envs));
    const env = [
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      ...Env.filter((line) => !names.has(line.split('=')[0] ?? '')),
      ...Object.entries(answer.envs).map(([name, value]) => `${name}=${value}`),
    ];
    const sets = uid === 0 ? ['bounding', 'effective', 'permitted'] : ['bounding'];
    return {
      ociVersion: '1.0.2',
      process: {
        ...{ user: { uid, gid }, args, env, cwd: '/' },
        capabilities: Object.fromEntries(sets.map((set) => [set, CAPABILITIES])),
      },
      root: { path: root, readonly: readOnlyRoot },
      hostname: 'container',
      mounts: [...systemMounts(), ...answer.mounts.map(bindMount)],
      linux: { namespaces: NAMESPACES.map((type) => ({ type })) },
    };
  }
}

function systemMounts(): object[] {
  const options = ['nosuid', 'noexec'];
  return [
    { destination: '/proc', type: 'proc', source: 'proc', options: [...options, 'nodev'] },
    { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755'] },
    { destination: '/dev/pts', type: 'devpts', source: 'devpts', options },
    { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: [...options, 'nodev'] },
  ];
}

function bindMount(mount: ContainerAllocateResponse['mounts'][number]): object {
  const { containerPath, hostPath, readOnly } = mount;
  const options = ['rbind', 'rprivate', readOnly ? 'ro' : 'rw'];
  return { destination: containerPath, type: 'bind', source: hostPath, options };
}
