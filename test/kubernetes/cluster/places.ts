import path from 'node:path';

/**
 * Directories and addresses of the test's node. Fixed, so that a run finds the remains of a killed
 * one.
 */
export const NODE_DIRECTORY = '/var/lib/nvidia-virtual-test-node';
export const CONTAINERD_SOCKET = path.join(NODE_DIRECTORY, 'containerd.sock');
/**
 * Only root may enter the directory of its images, but a container with user namespaces needs this
 * one.
 */
export const CONTAINERD_STATE = path.join(NODE_DIRECTORY, 'containerd-state');
export const CNI_CONFIGURATION = path.join(NODE_DIRECTORY, 'cni');
/** Mirrors of registries: `HOST/hosts.toml`, which containerd reads at each pull. */
export const REGISTRY_MIRRORS = path.join(NODE_DIRECTORY, 'certs.d');
export const POD_LOGS = path.join(NODE_DIRECTORY, 'logs');
/** Directories of the kubelet and of the product, as on any node: programs expect them there. */
export const KUBELET_ROOT = '/var/lib/kubelet';
export const STATE_ROOT = '/var/lib/nvidia-virtual';
/** Marks a directory as a test's, which may be removed. */
export const MARK = '.nvidia-virtual-test-node';

export const BRIDGE = 'cni0';
/** The host's end of the pod network, and so the address of the node and of the API server. */
export const NODE_ADDRESS = '10.88.0.1';
export const POD_NETWORK = '10.88.0.0/16';
