import type { V1Node, V1Pod } from '@kubernetes/client-node';
import type { ApiServer, Query } from '@nvidia-virtual/kube-common/api-server';
import type { Assignment } from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { gpu, node, pod } from '../../kubernetes/scheduler/objects.js';

const GPUS = 8;
export const SLOTS = 10;
const AT_ONCE = 16;
export const PODS = '/api/v1/namespaces/default/pods';

export function nodeName(index: number): string {
  return `node-${index}`;
}

function gpuUuid(node: number, index: number): string {
  return `GPU-${String(node).padStart(8, '0')}-0000-4000-8000-${String(index).padStart(12, '0')}`;
}

/** Nodes of eight GPUs from one index to before another, ready for pods. */
export async function createNodes(api: ApiServer, from: number, to: number): Promise<void> {
  await inParallel(to - from, async (offset) => {
    const index = from + offset;
    const gpus = Array.from({ length: GPUS }, (_, place) => gpu(gpuUuid(index, place)));
    const body: V1Node = node(nodeName(index), gpus);
    const path = '/api/v1/nodes';
    await api.request({ method: 'POST', path, body, timeout: 60_000 });
    const patch = {
      body: { spec: { taints: null } },
      contentType: 'application/merge-patch+json',
      timeout: 60_000,
    };
    await api.request({ method: 'PATCH', path: `${path}/${nodeName(index)}`, ...patch });
  });
}

/**
 * Running pods on such nodes, as our scheduler would have placed them. Each GPU has at most one, so
 * that nearly all nodes differ.
 */
export async function createRunningPods(
  api: ApiServer,
  from: number,
  to: number,
  count: number,
): Promise<void> {
  const places = shuffled((to - from) * GPUS)
    .slice(0, count)
    .map((place) => place + from * GPUS);
  await inParallel(count, async (index) => {
    const [home, place] = [
      Math.floor((places[index] as number) / GPUS),
      (places[index] as number) % GPUS,
    ];
    const slots = 1 + ((places[index] as number) % SLOTS);
    const assignment: Assignment = {
      version: 1,
      containers: { main: [{ gpu: gpuUuid(home, place), slots }] },
    };
    const annotations = { [ANNOTATION.assigned]: JSON.stringify(assignment) };
    const body = pod(`running-${places[index]}`, {
      slots,
      annotations,
      spec: { nodeName: nodeName(home) },
    });
    await api.request({ method: 'POST', path: PODS, body, timeout: 60_000 });
  });
}

/** Integers from 0 in an order that is equal each time. */
function shuffled(count: number): number[] {
  const numbers = Array.from({ length: count }, (_, index) => index);
  let state = 1;
  for (let index = count - 1; index > 0; index--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const other = state % (index + 1);
    [numbers[index], numbers[other]] = [numbers[other] as number, numbers[index] as number];
  }
  return numbers;
}

export function createPods(api: ApiServer, pods: readonly V1Pod[]): Promise<V1Pod[]> {
  return inParallel(pods.length, (index) =>
    api.request<V1Pod>({ method: 'POST', path: PODS, body: pods[index], timeout: 60_000 }),
  );
}

/** @param query selects the pods */
export async function deletePods(api: ApiServer, query: Query): Promise<void> {
  const all = { ...query, gracePeriodSeconds: 0 };
  await api.request({ method: 'DELETE', path: PODS, query: all, timeout: 600_000 });
}

export async function listPods(api: ApiServer): Promise<V1Pod[]> {
  const pods: V1Pod[] = [];
  let next: string | undefined;
  do {
    const query = { limit: 1000, continue: next };
    const page = await api.request<{ metadata: { continue?: string }; items: V1Pod[] }>({
      path: PODS,
      query,
      timeout: 60_000,
    });
    pods.push(...page.items);
    next = page.metadata.continue;
  } while (next);
  return pods;
}

async function inParallel<T>(count: number, act: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = new Array(count);
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) results[index] = await act(index);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
