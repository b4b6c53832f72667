import { readdirSync } from 'node:fs';
import path from 'node:path';
import { type CallOptions, type Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { whyNotServed } from '@nvidia-virtual/gpu-proxy/socket';
import { loadPodResources } from '@nvidia-virtual/kubernetes/pod-resources';
import type { ContainerDevices } from './protocol.js';

const PATIENCE_MS = 1000;
/** What the plugins of NVIDIA, of clouds and of those who share GPUs under NVIDIA's names call their resources. */
const RESOURCE_NAME = /^nvidia\.com\/(gpu|mig|pgpu|vgpu)/;
/** Sockets of such plugins, and of NVIDIA's driver for resource claims, where the kubelet finds them. */
const SOCKETS = [
  ['device-plugins', /^nvidia-?(gpu|mig)/i],
  ['plugins_registry', /^gpu\.nvidia\.com\b.*\.sock$/],
] as const;

type PodResources = Client & {
  getAllocatableResources(
    request: object,
    options: CallOptions,
    callback: (error: ServiceError | null, answer?: { readonly devices: readonly ContainerDevices[] }) => void,
  ): void;
};

/**
 * Another plugin that gives out these GPUs, in words; undefined when there is none. The kubelet says which devices NVIDIA's resources have: those
 * that name other GPUs are no conflict, those that name none may be any. Before it says anything, a socket is enough.
 * @param gpus UUIDs of ours
 */
export async function findNvidiaPlugin(kubeletRoot: string, gpus: readonly string[]): Promise<string | undefined> {
  const theirs = (await allocatable(kubeletRoot)).filter(({ resourceName }) => RESOURCE_NAME.test(resourceName));
  const shared = theirs.find(({ deviceIds }) => deviceIds.some((id) => mayBeOneOf(id, gpus)));
  if (shared) return `a plugin with ${shared.deviceIds.length} devices of ${shared.resourceName}`;
  return theirs.length > 0 ? undefined : findSocket(kubeletRoot);
}

/** Time slices of a GPU are called `GPU-...::3`. */
function mayBeOneOf(device: string, gpus: readonly string[]): boolean {
  const uuid = /^GPU-[\da-f-]{36}/i.exec(device)?.[0].toLowerCase();
  return uuid === undefined || gpus.some((gpu) => gpu.toLowerCase() === uuid);
}

async function findSocket(kubeletRoot: string): Promise<string | undefined> {
  for (const [directory, name] of SOCKETS)
    for (const socket of list(path.join(kubeletRoot, directory)).filter((entry) => name.test(entry))) {
      const where = path.join(kubeletRoot, directory, socket);
      if ((await whyNotServed(where)) === undefined) return `the plugin that listens on ${where}`;
    }
  return undefined;
}

/** Empty while the kubelet does not answer. */
async function allocatable(kubeletRoot: string): Promise<readonly ContainerDevices[]> {
  const Service = loadPodResources();
  const socket = path.join(kubeletRoot, 'pod-resources', 'kubelet.sock');
  const kubelet = new Service(`unix:${socket}`, credentials.createInsecure()) as unknown as PodResources;
  try {
    return await new Promise((resolve) =>
      kubelet.getAllocatableResources({}, { deadline: Date.now() + PATIENCE_MS }, (_, answer) => resolve(answer?.devices ?? [])),
    );
  } finally {
    kubelet.close();
  }
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
