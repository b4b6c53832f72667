import { type InventoryGpu, readInventory as parse } from '@nvidia-virtual/kubernetes/assignment';
import type { V1Node } from '@kubernetes/client-node';
import type { Cluster } from '../cluster/cluster.js';
import { NODE_NAME } from '../cluster/node-agents.js';
