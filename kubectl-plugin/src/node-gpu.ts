import { PluginError } from './errors.js';
import type { UsageClient } from './usage-client.js';

/**
 * @param gpu index or UUID
 * @returns the UUID of a GPU of the node. @throws PluginError NO_SUCH_GPU and others, KubectlError
 */
export async function findGpu(
  client: Pick<UsageClient, 'node'>,
  node: string,
  gpu: string,
): Promise<string> {
  const { gpus } = await client.node(node);
  const found = gpus.find(
    ({ index, uuid }) => String(index) === gpu || uuid.toLowerCase() === gpu.toLowerCase(),
  );
  if (found) return found.uuid;
  const known = gpus.map(({ index, uuid }) => `${index} (${uuid})`).join(', ') || 'none';
  throw new PluginError('NO_SUCH_GPU', { node, gpu, gpus: known });
}
