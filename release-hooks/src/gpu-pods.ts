import type { V1Pod } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { pagesOf } from '@nvidia-virtual/kube-common/list-pages';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { ReleaseError } from './errors.js';

const MOST_NAMED = 10;

/** A revision of a release, by Helm's number. */
export interface Revision {
  readonly release: string;
  readonly revision: string;
  readonly namespace: string;
}

/**
 * Refuses to uninstall while pods have slots of a GPU.
 * @throws ReleaseError GPU_PODS_LEFT, ApiError
 */
export async function refuseWhileGpusAreUsed(
  api: ApiServer,
  { release, revision, namespace }: Revision,
): Promise<void> {
  const pods = await findGpuPods(api);
  if (pods.length === 0) return;
  const named = pods.slice(0, MOST_NAMED).join(', ');
  const more = pods.length > MOST_NAMED ? ` and ${pods.length - MOST_NAMED} more` : '';
  const count = pods.length === 1 ? '1 pod is' : `${pods.length} pods are`;
  throw new ReleaseError('GPU_PODS_LEFT', {
    count,
    pods: named + more,
    release,
    revision,
    namespace,
  });
}

/**
 * `NAMESPACE/NAME` of each pod that holds slots: it is bound to a node, and has not ended.
 */
async function findGpuPods(api: ApiServer): Promise<string[]> {
  const found: string[] = [];
  for await (const { items = [] } of pagesOf<V1Pod>(api, { path: '/api/v1/pods', timeout: 60_000 }))
    found.push(
      ...items.filter(holdsSlots).map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`),
    );
  return found;
}

function holdsSlots({ spec, status }: V1Pod): boolean {
  if (!spec?.nodeName || status?.phase === 'Succeeded' || status?.phase === 'Failed') return false;
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  return containers.some(
    ({ resources }) =>
      RESOURCE in (resources?.limits ?? {}) || RESOURCE in (resources?.requests ?? {}),
  );
}
