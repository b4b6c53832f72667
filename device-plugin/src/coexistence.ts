import { RESOURCE } from '@nvidia-virtual/kubernetes/names';
import { whatDefaultRuntimeGives } from './default-runtime.js';
import { PluginError } from './errors.js';
import { findNvidiaPlugin } from './nvidia-plugin.js';
import type { Allowed } from './options.js';

export interface CoexistenceOptions {
  readonly node: string;
  readonly kubeletRoot: string;
  readonly allow: readonly Allowed[];
}

/** Why this node must offer nothing, as things are; undefined when it may. Only what is on this machine is asked, for a second at most. */
export async function findConflict(
  { node, kubeletRoot, allow }: CoexistenceOptions,
  gpus: readonly string[],
): Promise<PluginError | undefined> {
  const sign = allow.includes('nvidia-runtime') ? undefined : whatDefaultRuntimeGives();
  if (sign !== undefined) return new PluginError('NVIDIA_RUNTIME', { node, resource: RESOURCE, sign });
  const what = allow.includes('nvidia-plugin') ? undefined : await findNvidiaPlugin(kubeletRoot, gpus);
  return what === undefined ? undefined : new PluginError('NVIDIA_PLUGIN', { node, resource: RESOURCE, what });
}
