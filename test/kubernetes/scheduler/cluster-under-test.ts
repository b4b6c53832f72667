import { setTimeout as sleep } from 'node:timers/promises';
import type { CoreV1Event, V1Pod } from '@kubernetes/client-node';
import { ApiError, ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { type InventoryGpu, readAssignment } from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { node } from './objects.js';

const PODS = '/api/v1/namespaces/default/pods';
const PATIENCE = 60_000;

/** What tests do to an API server, as its administrator. */
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

  /** With time to end it stays, since no kubelet is there. */
  async delete(name: string, gracePeriodSeconds = 0): Promise<void> {
    await this.api.request({
      method: 'DELETE',
      path: `${PODS}/${name}`,
      query: { gracePeriodSeconds },
    });
  }

  /** As a scheduler that knows nothing of slots. */
  async bind(name: string, node: string): Promise<void> {
    const body = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name },
      target: { apiVersion: 'v1', kind: 'Node', name: node },
    };
    await this.api.request({ method: 'POST', path: `${PODS}/${name}/binding`, body });
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
      timeout: PATIENCE,
    });
    await until('no pod is left', async () => (await this.pods()).length === 0);
  }

  /** The pod once it is bound. */
  async bound(name: string): Promise<V1Pod> {
    let pod: V1Pod | undefined;
    await until(`pod ${name} is bound`, async () => {
      pod = await this.get(name);
      return pod.spec?.nodeName !== undefined;
    });
    return pod as V1Pod;
  }

  /** What the events of a pod say, once there is one with that reason. */
  async eventsOf(name: string, reason: string): Promise<string[]> {
    let messages: string[] = [];
    await until(`pod ${name} has an event ${reason}`, async () => {
      const path = '/api/v1/namespaces/default/events';
      const { items } = await this.api.request<{ items: CoreV1Event[] }>({
        path,
        query: { fieldSelector: `involvedObject.name=${name}` },
      });
      messages = items
        .filter((event) => event.reason === reason)
        .map(({ message = '' }) => message);
      return messages.length > 0;
    });
    return messages;
  }
}

export const MERGE = 'application/merge-patch+json';

/** GPUs and slots of each container, as its assignment says. */
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
 * Slots that pods hold of each GPU; every container's, so only for pods without init containers.
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

export async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const end = performance.now() + PATIENCE;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited in vain until ${what}`);
    await sleep(50);
  }
}

/** What the API server said when it refused. */
export async function refusalOf(request: Promise<unknown>): Promise<string> {
  const refusal = await request.then(
    () => 'nothing was refused',
    (error: unknown) => error,
  );
  if (!(refusal instanceof ApiError))
    throw new Error(`expected a refusal of the API server: ${refusal}`);
  return refusal.message;
}
