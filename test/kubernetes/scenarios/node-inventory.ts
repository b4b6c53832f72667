import type { V1Node } from '@kubernetes/client-node';
import { type InventoryGpu, readInventory } from '@nvidia-virtual/kube-common/assignment';
import { INVENTORY_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { Cluster } from '../cluster/cluster.js';

/** The node's GPU, as its device plugin describes it to the scheduler. */
export async function nodeGpu(cluster: Cluster): Promise<InventoryGpu> {
  const { metadata } = await cluster.api.request<V1Node>({
    path: `/api/v1/nodes/${cluster.nodeName}`,
  });
  const [gpu] = readInventory(metadata?.annotations?.[INVENTORY_ANNOTATION])?.gpus ?? [];
  if (!gpu)
    throw new Error(`the node has no inventory of GPUs: ${JSON.stringify(metadata?.annotations)}`);
  return gpu;
}
