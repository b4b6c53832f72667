import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { whatDefaultRuntimeGives } from './default-runtime.js';
import { PluginError } from './errors.js';
import { findNvidiaPlugin } from './nvidia-plugin.js';
import type { Allowed } from './options.js';

interface CoexistenceOptions {
  readonly node: string;
  readonly kubeletRoot: string;
  readonly allow: readonly Allowed[];
}

/**
 * The reason why this node must not offer slots; undefined: it may. Checks this machine only, for a
 * second at most.
 */
export async function findConflict(
  { node, kubeletRoot, allow }: CoexistenceOptions,
  gpus: readonly string[],
): Promise<PluginError | undefined> {
  const sign = allow.includes('nvidia-runtime') ? undefined : whatDefaultRuntimeGives();
  if (sign !== undefined)
    return new PluginError('NVIDIA_RUNTIME', { node, resource: RESOURCE, sign });
  const what = allow.includes('nvidia-plugin')
    ? undefined
    : await findNvidiaPlugin(kubeletRoot, gpus);
  return what === undefined
    ? undefined
    : new PluginError('NVIDIA_PLUGIN', { node, resource: RESOURCE, what });
}
