import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { ContainerIdentity } from './cgroup.js';
import { nameOf } from './container-request.js';
import { type Holders, isHolder } from './pod-resources.js';

/**
 * Three sources that must agree: the identity of the process that connects, the pod in the API
 * server, and the kubelet's list of slots.
 */
interface TenantEvidence {
  readonly peer: ContainerIdentity;
  readonly pod: V1Pod;
  readonly slots: readonly string[];
  readonly holders: Holders;
}

/**
 * The container that has the slots. An init container that ends is not in the kubelet's list, and
 * leaves its slots to a later one; or two containers of the pod have the same one. Then the
 * container's id must be known, which the API server learns a moment after the start.
 * @throws ProxyError SLOTS_OF_ANOTHER, SLOTS_NOT_LISTED, CONTAINER_NOT_KNOWN; each may be another
 * answer a moment later.
 */
export function findTenant(evidence: TenantEvidence): string {
  const { peer, pod, slots, holders } = evidence;
  const known = containerNamed(pod, peer.containerId);
  const own = slots.map((slot) =>
    (holders.get(slot) ?? []).filter((holder) => isHolder(holder, named(pod))),
  );
  const [other] = slots.flatMap((slot, index) =>
    own[index]?.length ? [] : (holders.get(slot) ?? []),
  );
  if (other)
    throw new ProxyError('SLOTS_OF_ANOTHER', {
      pod: nameOf(pod),
      slots: slots.join(', '),
      holder: `${other.namespace}/${other.pod}`,
    });
  const inits = endingInitContainers(pod, slots.length);
  if (known !== undefined && inits.includes(known)) return known;
  // The pod's condition Initialized decides nothing. After a sandbox is lost, its init containers
  // run again while the API server still has the condition.
  const undecided = inits.length > 0 || own.some((several) => several.length > 1);
  if (undecided && known === undefined)
    throw new ProxyError('CONTAINER_NOT_KNOWN', {
      pod: nameOf(pod),
      id: peer.containerId ?? 'none',
    });
  const listed = own.map(
    (several) => several.find(({ container }) => container === known) ?? several[0],
  );
  const [holder] = listed;
  if (!holder || listed.some((one) => one?.container !== holder.container))
    throw new ProxyError('SLOTS_NOT_LISTED', { pod: nameOf(pod), slots: slots.join(', ') });
  if (known !== undefined && known !== holder.container)
    throw new ProxyError('PEER_OTHER_CONTAINER', {
      pod: nameOf(pod),
      container: known,
      owner: holder.container,
    });
  return holder.container;
}

/**
 * The name of the container with this id; undefined when the API server does not know it, or not
 * yet.
 */
export function containerNamed({ status }: V1Pod, id: string | undefined): string | undefined {
  if (id === undefined) return undefined;
  const statuses = [
    status?.initContainerStatuses,
    status?.containerStatuses,
    status?.ephemeralContainerStatuses,
  ].flatMap((some) => some ?? []);
  return statuses.find((one) => idsOf(one).some((written) => written?.endsWith(`/${id}`)))?.name;
}

function idsOf({ containerID, lastState, state }: V1ContainerStatus): (string | undefined)[] {
  return [containerID, state?.terminated?.containerID, lastState?.terminated?.containerID];
}

/** Init containers, except sidecars, that request exactly this number of slots. */
export function endingInitContainers({ spec }: V1Pod, slots: number): string[] {
  const ending = (spec?.initContainers ?? []).filter(
    ({ restartPolicy }) => restartPolicy !== 'Always',
  );
  return ending
    .filter(({ resources }) => Number(resources?.limits?.[RESOURCE] ?? 0) === slots)
    .map(({ name }) => name);
}

function named({ metadata }: V1Pod): { readonly namespace: string; readonly pod: string } {
  return { namespace: metadata?.namespace ?? '', pod: metadata?.name ?? '' };
}
