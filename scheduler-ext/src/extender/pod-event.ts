import { createHash } from 'node:crypto';
import type { CoreV1Event } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import type { PodRecord } from '../cluster/pod.js';

interface PodEvent {
  readonly reason: string;
  readonly message: string;
  /** Events of a pod with the same subject replace each other. */
  readonly subject: string;
}

/**
 * Writes a warning of a pod. Its name is the same for each extender, so the pod has it once. A
 * subject is none that a tenant can choose, because each one is an object of the API server.
 * @throws ApiError
 */
export async function warnPod(
  api: Pick<ApiServer, 'request'>,
  { namespace, name: podName, uid }: PodRecord,
  { reason, message, subject }: PodEvent,
): Promise<void> {
  const digest = createHash('sha256').update(`${uid} ${subject}`).digest('hex');
  const name = `${podName.slice(0, 200)}.gpu-${digest.slice(0, 16)}`;
  const now = new Date();
  const body: CoreV1Event = {
    metadata: { name, namespace },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name: podName, uid },
    ...{ type: 'Warning', reason, message: message.slice(0, 1024) },
    source: { component: 'nvidia-virtual' },
    ...{ count: 1, firstTimestamp: now, lastTimestamp: now },
  };
  const path = `/api/v1/namespaces/${namespace}/events/${name}`;
  await api.request({ method: 'PUT', path, body });
}
