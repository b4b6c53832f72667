import type { V1Node } from '@kubernetes/client-node';
import { type InventoryGpu, readInventory } from '@nvidia-virtual/kube-common/assignment';
import { INVENTORY_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { Cluster } from '../cluster/cluster.js';

/** The node's GPUs, as its device plugin describes them to the scheduler. */
export async function nodeGpus(cluster: Cluster): Promise<readonly InventoryGpu[]> {
  const { metadata } = await cluster.api.request<V1Node>({
    path: `/api/v1/nodes/${cluster.nodeName}`,
  });
  return readInventory(metadata?.annotations?.[INVENTORY_ANNOTATION])?.gpus ?? [];
}

/** The only one of them. */
export async function nodeGpu(cluster: Cluster): Promise<InventoryGpu> {
  const [gpu] = await nodeGpus(cluster);
  if (!gpu) throw new Error('the node has no inventory of GPUs');
  return gpu;
}
