import path from 'node:path';
import { type CallOptions, type Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { loadPodResources } from '@nvidia-virtual/kube-common/pod-resources';
import { namesIn } from '@nvidia-virtual/service/files';
import { whyNotServed } from '@nvidia-virtual/service/socket';
import type { ContainerDevices } from './protocol.js';

const PATIENCE_MS = 1000;
/**
 * Resource names of plugins by NVIDIA, by clouds, and by GPU sharing products that use NVIDIA's
 * names.
 */
const RESOURCE_NAME = /^nvidia\.com\/(gpu|mig|pgpu|vgpu)/;
/**
 * Kubelet directories and socket names of such plugins and of NVIDIA's DRA driver.
 */
const SOCKETS = [
  ['device-plugins', /^nvidia-?(gpu|mig)/i],
  ['plugins_registry', /^gpu\.nvidia\.com\b.*\.sock$/],
] as const;

type PodResources = Client & {
  getAllocatableResources(
    request: object,
    options: CallOptions,
    callback: (
      error: ServiceError | null,
      answer?: { readonly devices: readonly ContainerDevices[] },
    ) => void,
  ): void;
};

/**
 * Describes another plugin that offers these GPUs; undefined: none. Based on the kubelet's list of
 * devices of NVIDIA's resources. Devices that name other GPUs are no conflict; devices without a
 * UUID can be any GPU. If the kubelet lists none, a socket of such a plugin is a conflict.
 * @param gpus UUIDs of this node's GPUs
 */
export async function findNvidiaPlugin(
  kubeletRoot: string,
  gpus: readonly string[],
): Promise<string | undefined> {
  const theirs = (await allocatable(kubeletRoot)).filter(({ resourceName }) =>
    RESOURCE_NAME.test(resourceName),
  );
  const shared = theirs.find(({ deviceIds }) => deviceIds.some((id) => mayBeOneOf(id, gpus)));
  if (shared) return `a plugin with ${shared.deviceIds.length} devices of ${shared.resourceName}`;
  return theirs.length > 0 ? undefined : findSocket(kubeletRoot);
}

/** Time slices of a GPU have the name `GPU-...::3`. */
function mayBeOneOf(device: string, gpus: readonly string[]): boolean {
  const uuid = /^GPU-[\da-f-]{36}/i.exec(device)?.[0].toLowerCase();
  return uuid === undefined || gpus.some((gpu) => gpu.toLowerCase() === uuid);
}

async function findSocket(kubeletRoot: string): Promise<string | undefined> {
  for (const [directory, name] of SOCKETS)
    for (const socket of namesIn(path.join(kubeletRoot, directory)).filter((entry) =>
      name.test(entry),
    )) {
      const where = path.join(kubeletRoot, directory, socket);
      if ((await whyNotServed(where)) === undefined) return `the plugin that listens on ${where}`;
    }
  return undefined;
}

/** Empty while the kubelet does not answer. */
async function allocatable(kubeletRoot: string): Promise<readonly ContainerDevices[]> {
  const Service = loadPodResources();
  const socket = path.join(kubeletRoot, 'pod-resources', 'kubelet.sock');
  const kubelet = new Service(
    `unix:${socket}`,
    credentials.createInsecure(),
  ) as unknown as PodResources;
  try {
    return await new Promise((resolve) =>
      kubelet.getAllocatableResources({}, { deadline: Date.now() + PATIENCE_MS }, (_, answer) =>
        resolve(answer?.devices ?? []),
      ),
    );
  } finally {
    kubelet.close();
  }
}
