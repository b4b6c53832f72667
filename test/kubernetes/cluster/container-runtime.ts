import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import {
  buildKubernetesTools,
  CONTAINERD_TOOLS,
  kubernetesTool,
} from '@nvidia-virtual/toolchain/kubernetes-tools';
import type { DaemonOptions } from '../daemon.js';
import { PAUSE } from '../images.js';
import { RUNC, writeRunc } from './bounded-runc.js';
import {
  CNI_CONFIGURATION,
  CONTAINERD_SOCKET,
  CONTAINERD_STATE,
  NODE_DIRECTORY,
  REGISTRY_MIRRORS,
} from './places.js';

/** Debian's containerd and runc, and upstream's current ones, which are built from source. */
export const RUNTIMES = ['containerd-1', 'containerd-2'] as const;
export type ContainerRuntime = (typeof RUNTIMES)[number];

const NAMESPACE = 'k8s.io';
const CNI_PLUGINS = '/usr/lib/cni';

/** Writes its configuration. @returns how to start it */
export async function prepareRuntime(
  runtime: ContainerRuntime,
): Promise<Omit<DaemonOptions, 'logFile'>> {
  mkdirSync(NODE_DIRECTORY, { recursive: true });
  writeRunc();
  const file = path.join(NODE_DIRECTORY, 'containerd.toml');
  writeFileSync(file, runtime === 'containerd-1' ? configuration1() : configuration2());
  if (runtime === 'containerd-2') await buildKubernetesTools(CONTAINERD_TOOLS);
  const directory = binaries(runtime);
  const runc = runtime === 'containerd-2' ? [path.dirname(kubernetesTool('runc'))] : [];
  // It finds its shim in PATH, and the shim finds runc there.
  return {
    program: path.join(directory, 'containerd'),
    args: ['--config', file],
    env: { ...process.env, PATH: [...runc, directory, process.env['PATH']].join(':') },
  };
}

export async function runtimeServes(runtime: ContainerRuntime): Promise<boolean> {
  return (await ctr(runtime, 'version')).status === 0;
}

/** Imports images as if they had been pulled. */
export async function importImages(
  runtime: ContainerRuntime,
  archives: readonly string[],
): Promise<void> {
  for (const archive of archives) {
    const { status, output } = await ctr(runtime, 'images', 'import', '--no-unpack=false', archive);
    if (status !== 0) throw new Error(`containerd did not take ${archive}:\n${output}`);
  }
}

/** Removes images, so that they are pulled again. Those that do not exist are ignored. */
export async function removeImages(
  runtime: ContainerRuntime,
  names: readonly string[],
): Promise<void> {
  const { status, output } = await ctr(runtime, 'images', 'remove', '--sync', ...names);
  if (status !== 0) throw new Error(`containerd did not remove images:\n${output}`);
}

function ctr(runtime: ContainerRuntime, ...args: string[]): ReturnType<typeof runCommand> {
  return runCommand(path.join(binaries(runtime), 'ctr'), [
    '--address',
    CONTAINERD_SOCKET,
    '--connect-timeout',
    '60s',
    '--namespace',
    NAMESPACE,
    ...args,
  ]);
}

function binaries(runtime: ContainerRuntime): string {
  return runtime === 'containerd-1' ? '/usr/bin' : path.dirname(kubernetesTool('containerd'));
}

// The containers may not lower their oom_score_adj, because the test often runs in a container
// itself.
function configuration1(): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
${common()}
[${cri}]
sandbox_image = "${PAUSE}"
restrict_oom_score_adj = true
[${cri}.registry]
config_path = "${REGISTRY_MIRRORS}"
[${cri}.cni]
bin_dir = "${CNI_PLUGINS}"
conf_dir = "${CNI_CONFIGURATION}"
[${cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[${cri}.containerd.runtimes.runc.options]
BinaryName = "${RUNC}"
`;
}

function configuration2(): string {
  const runtime = 'plugins."io.containerd.cri.v1.runtime"';
  return `version = 3
${common()}
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "${PAUSE}"
[plugins."io.containerd.cri.v1.images".registry]
config_path = "${REGISTRY_MIRRORS}"
[${runtime}]
restrict_oom_score_adj = true
[${runtime}.cni]
bin_dirs = ["${CNI_PLUGINS}"]
conf_dir = "${CNI_CONFIGURATION}"
[${runtime}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[${runtime}.containerd.runtimes.runc.options]
BinaryName = "${RUNC}"
`;
}

function common(): string {
  return `root = "${NODE_DIRECTORY}/containerd/root"
state = "${CONTAINERD_STATE}"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
address = "${CONTAINERD_SOCKET}"`;
}
