import { existsSync } from 'node:fs';
import path from 'node:path';
import { prepareGrant } from '@nvidia-virtual/node-state/grant';
import { nvidiaSmiIn } from '@nvidia-virtual/node-state/paths';
import { systemReason } from '@nvidia-virtual/service/errors';
import { plural } from '@nvidia-virtual/service/plural';
import { containerFiles, LIBRARY_DIRECTORIES } from './container-files.js';
import { PluginError } from './errors.js';
import type {
  AllocateRequest,
  AllocateResponse,
  ContainerAllocateResponse,
  Mount,
} from './protocol.js';
import type { SlotList } from './slot-list.js';
import type { Version } from './versions.js';

/**
 * Directory of the socket in every container. The interposer's default is gpu.sock in it.
 */
const SOCKET_DIRECTORY = '/run/nvidia-virtual';

const NVIDIA_SMI = '/usr/bin/nvidia-smi';

const ENVIRONMENT = {
  // If NVIDIA's runtime is the default, it must inject nothing, even if the image requests it.
  NVIDIA_VISIBLE_DEVICES: 'void',
  // Triton searches with ldconfig, whose cache in the image lacks the library.
  TRITON_LIBCUDA_PATH: LIBRARY_DIRECTORIES[0],
};

interface Granting {
  readonly node: string;
  readonly state: string;
  readonly version: Version;
  readonly slots: SlotList;
  /** Whether containers get nvidia-smi, if gpu-proxy has found one. */
  readonly nvidiaSmi: boolean;
  /** Whether /etc/ld.so.preload of the container names our libraries. */
  readonly preload: boolean;
}

/**
 * Answers Allocate: mounts the directory of gpu-proxy's socket and our files. Requires only this
 * node's disk. The kubelet stores the answer and uses it for each restart of the container, so all
 * paths in it must stay valid.
 * @throws PluginError SLOT_UNKNOWN, GRANT_NOT_MADE
 */
export function answer(request: AllocateRequest, granting: Granting): AllocateResponse {
  return {
    containerResponses: request.containerRequests.map(({ devicesIds }) =>
      answerContainer(devicesIds, granting),
    ),
  };
}

function answerContainer(
  ids: readonly string[],
  { node, state, version, slots, nvidiaSmi, preload }: Granting,
): ContainerAllocateResponse {
  const unknown = ids.find((id) => !slots.has(id));
  if (unknown !== undefined) throw new PluginError('SLOT_UNKNOWN', { node, slot: unknown });
  try {
    const { clientDirectory } = prepareGrant(state, ids, version.name);
    const tool = nvidiaSmiIn(state);
    const files = containerFiles({ preload }).map(
      ([place, file]) => [path.join(version.directory, file), place] as const,
    );
    const tools = nvidiaSmi && existsSync(tool) ? [[tool, NVIDIA_SMI] as const] : [];
    return { envs: ENVIRONMENT, mounts: mountsOf(clientDirectory, [...files, ...tools]) };
  } catch (error) {
    throw new PluginError('GRANT_NOT_MADE', {
      state,
      node,
      slots: plural(ids.length, 'slot'),
      reason: systemReason(error),
    });
  }
}

/**
 * Mounts the directory of the socket, because gpu-proxy recreates the socket. Mounts the others as
 * files, because their directories belong to the image.
 */
function mountsOf(
  clientDirectory: string,
  files: readonly (readonly [hostPath: string, containerPath: string])[],
): Mount[] {
  const mounts = [[clientDirectory, SOCKET_DIRECTORY] as const, ...files];
  return mounts.map(([hostPath, containerPath]) => ({ hostPath, containerPath, readOnly: true }));
}
