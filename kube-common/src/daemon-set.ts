import type { V1DaemonSet } from '@kubernetes/client-node';
import { ApiError, type ApiServer } from './api-server.js';

const NOT_FOUND = 404;

/**
 * Whether a DaemonSet is there and meant to stay, is being deleted, or is gone. @throws ApiError
 */
export async function daemonSetState(
  api: ApiServer,
  namespace: string,
  name: string,
): Promise<'lives' | 'leaves' | 'gone'> {
  try {
    const { metadata } = await api.request<V1DaemonSet>({
      path: `/apis/apps/v1/namespaces/${namespace}/daemonsets/${name}`,
    });
    return metadata?.deletionTimestamp === undefined ? 'lives' : 'leaves';
  } catch (error) {
    if (error instanceof ApiError && error.status === NOT_FOUND) return 'gone';
    throw error;
  }
}
