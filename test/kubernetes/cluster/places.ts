import path from 'node:path';

/**
 * What the test's node has for itself. Fixed, so that a run finds what one before it left, if that
 * was killed.
 */
export const NODE_DIRECTORY = '/var/lib/nvidia-virtual-test-node';
export const CONTAINERD_SOCKET = path.join(NODE_DIRECTORY, 'containerd.sock');
/** Its images lie where only root may pass; a container with users of its own must reach this. */
export const CONTAINERD_STATE = path.join(NODE_DIRECTORY, 'containerd-state');
export const CNI_CONFIGURATION = path.join(NODE_DIRECTORY, 'cni');
export const POD_LOGS = path.join(NODE_DIRECTORY, 'logs');
/** The kubelet's, and the product's: as on any node, since programs find each other there. */
export const KUBELET_ROOT = '/var/lib/kubelet';
export const STATE_ROOT = '/var/lib/nvidia-virtual';
/** Says that a directory is a test's, and may be removed. */
export const MARK = '.nvidia-virtual-test-node';

export const BRIDGE = 'cni0';
/** The host's end of the pods' network, and so the address of the node and of the API server. */
export const NODE_ADDRESS = '10.88.0.1';
export const POD_NETWORK = '10.88.0.0/16';
