import type { CoreV1Event, V1Pod } from '@kubernetes/client-node';
import { ApiError, ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { type InventoryGpu, readAssignment } from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { node } from './objects.js';

const PODS = '/api/v1/namespaces/default/pods';
const DELETION_TIMEOUT_MS = 60_000;

/** Operations of a test on an API server, as its administrator. */
export class ClusterUnderTest {
  readonly api: ApiServer;

  constructor(kubeconfig: string) {
    this.api = ApiServer.load(kubeconfig);
  }

  async addNode(name: string, gpus: readonly InventoryGpu[]): Promise<void> {
    await this.api.request({ method: 'POST', path: '/api/v1/nodes', body: node(name, gpus) });
    // The API server taints a new node until a controller has seen that it is ready.
    await this.api.request({
      method: 'PATCH',
      path: `/api/v1/nodes/${name}`,
      body: { spec: { taints: null } },
      contentType: MERGE,
    });
  }

  async removeNode(name: string): Promise<void> {
    await this.api.request({ method: 'DELETE', path: `/api/v1/nodes/${name}` });
  }

  async annotateNode(name: string, annotations: Record<string, string | null>): Promise<void> {
    await this.api.request({
      method: 'PATCH',
      path: `/api/v1/nodes/${name}`,
      body: { metadata: { annotations } },
      contentType: MERGE,
    });
  }

  create(pod: V1Pod): Promise<V1Pod> {
    return this.api.request<V1Pod>({ method: 'POST', path: PODS, body: pod });
  }

  /** With a grace period the pod stays, because there is no kubelet. */
  async delete(name: string, gracePeriodSeconds = 0): Promise<void> {
    await this.api.request({
      method: 'DELETE',
      path: `${PODS}/${name}`,
      query: { gracePeriodSeconds },
    });
  }

  /** Binds as a scheduler that does not know slots. */
  async bind(name: string, node: string): Promise<void> {
    const body = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name },
      target: { apiVersion: 'v1', kind: 'Node', name: node },
    };
    await this.api.request({ method: 'POST', path: `${PODS}/${name}/binding`, body });
  }

  /** Reports the pod as running and ready, as its kubelet would. */
  async run(name: string): Promise<void> {
    await this.api.request({
      method: 'PATCH',
      path: `${PODS}/${name}/status`,
      body: { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
      contentType: MERGE,
    });
  }

  get(name: string): Promise<V1Pod> {
    return this.api.request<V1Pod>({ path: `${PODS}/${name}` });
  }

  async pods(): Promise<V1Pod[]> {
    return (await this.api.request<{ items: V1Pod[] }>({ path: PODS })).items;
  }

  async removePods(): Promise<void> {
    await this.api.request({
      method: 'DELETE',
      path: PODS,
      query: { gracePeriodSeconds: 0 },
      timeout: DELETION_TIMEOUT_MS,
    });
    await until(async () => (await this.pods()).length === 0, 'no pod is left');
  }

  /** The pod, once it is bound. */
  async bound(name: string): Promise<V1Pod> {
    return until(async () => {
      const pod = await this.get(name);
      return pod.spec?.nodeName !== undefined && pod;
    }, `pod ${name} is bound`);
  }

  /** Messages of the pod's events with this reason, once there is one. */
  async eventsOf(name: string, reason: string): Promise<string[]> {
    return until(async () => {
      const path = '/api/v1/namespaces/default/events';
      const { items } = await this.api.request<{ items: CoreV1Event[] }>({
        path,
        query: { fieldSelector: `involvedObject.name=${name}` },
      });
      const messages = items
        .filter((event) => event.reason === reason)
        .map(({ message = '' }) => message);
      return messages.length > 0 && messages;
    }, `pod ${name} has an event ${reason}`);
  }
}

export const MERGE = 'application/merge-patch+json';

/** GPUs and slots of each container in its assignment. */
export function assigned(pod: V1Pod): Record<string, string> {
  const { containers = {} } =
    readAssignment(pod.metadata?.annotations?.[ANNOTATION.assigned]) ?? {};
  const shown = Object.entries(containers).map(([name, gpus]) => [
    name,
    gpus.map(({ gpu, slots }) => `${slots} of ${gpu}`).join(', '),
  ]);
  return Object.fromEntries(shown);
}

/**
 * Slots that pods hold of each GPU. Sums all containers, so it is wrong for pods with init
 * containers.
 */
export function slotsSold(pods: readonly V1Pod[]): Record<string, number> {
  const sold: Record<string, number> = {};
  for (const pod of pods) {
    const { containers = {} } =
      readAssignment(pod.metadata?.annotations?.[ANNOTATION.assigned]) ?? {};
    for (const { gpu, slots } of Object.values(containers).flat())
      sold[gpu] = (sold[gpu] ?? 0) + slots;
  }
  return sold;
}

/** The message of the API server's refusal. */
export async function refusalOf(request: Promise<unknown>): Promise<string> {
  const refusal = await request.then(
    () => 'nothing was refused',
    (error: unknown) => error,
  );
  if (!(refusal instanceof ApiError))
    throw new Error(`expected a refusal of the API server: ${refusal}`);
  return refusal.message;
}
