import path from 'node:path';
import { counted } from '@nvidia-virtual/gpu-proxy/counted';
import { systemReason } from '@nvidia-virtual/gpu-proxy/errors';
import { prepareGrant } from '@nvidia-virtual/gpu-proxy/grant';
import { PluginError } from './errors.js';
import type { AllocateRequest, AllocateResponse, ContainerAllocateResponse, Mount } from './protocol.js';
import type { SlotList } from './slot-list.js';
import type { Version } from './versions.js';

/** Where every container finds its socket, whatever its environment: gpu.sock in it is our libcuda's default. */
const SOCKET_DIRECTORY = '/run/nvidia-virtual';
/** Where the loaders of Debian's and of Red Hat's children look without being told. */
const LIBRARY_DIRECTORIES = ['/usr/lib/x86_64-linux-gnu', '/usr/lib64'] as const;

const ENVIRONMENT = {
  // A default runtime of NVIDIA's must add nothing, whatever the image says.
  NVIDIA_VISIBLE_DEVICES: 'void',
  // Triton asks ldconfig, whose cache in the image does not know the library.
  TRITON_LIBCUDA_PATH: LIBRARY_DIRECTORIES[0],
};

export interface Granting {
  readonly node: string;
  readonly state: string;
  readonly version: Version;
  readonly slots: SlotList;
}

/**
 * What containers get for their slots: a directory in which gpu-proxy will serve, and the library. Made from this node's disk alone. The kubelet
 * keeps the answer and gives the same one to each start of the container, so nothing in it may ever change.
 * @throws PluginError SLOT_UNKNOWN, GRANT_NOT_MADE
 */
export function answer(request: AllocateRequest, granting: Granting): AllocateResponse {
  return { containerResponses: request.containerRequests.map(({ devicesIds }) => answerContainer(devicesIds, granting)) };
}

function answerContainer(ids: readonly string[], { node, state, version, slots }: Granting): ContainerAllocateResponse {
  const unknown = ids.find((id) => !slots.has(id));
  if (unknown !== undefined) throw new PluginError('SLOT_UNKNOWN', { node, slot: unknown });
  try {
    const { clientDirectory } = prepareGrant(state, ids, version.name);
    return { envs: ENVIRONMENT, mounts: mountsOf(clientDirectory, version) };
  } catch (error) {
    throw new PluginError('GRANT_NOT_MADE', { state, node, slots: counted(ids.length, 'slot'), reason: systemReason(error) });
  }
}

/** The socket's directory, since gpu-proxy makes the socket anew; the library as a file, since its directories are the image's. */
function mountsOf(clientDirectory: string, version: Version): Mount[] {
  const libraries = LIBRARY_DIRECTORIES.map((directory) => [version.library, path.join(directory, 'libcuda.so.1')] as const);
  const mounts = [[clientDirectory, SOCKET_DIRECTORY] as const, ...libraries];
  return mounts.map(([hostPath, containerPath]) => ({ hostPath, containerPath, readOnly: true }));
}
