import type { V1Pod } from '@kubernetes/client-node';
import { MIRROR_ANNOTATION } from '@nvidia-virtual/kube-common/names';

/** Further annotations that a kubelet writes on the mirror pod of a static pod. */
export const [HASH, SOURCE] = ['hash', 'source'].map((name) => `kubernetes.io/config.${name}`) as [
  string,
  string,
];

/**
 * The pod with this UID of the kubelet. The API server has another UID for static pods only. Users
 * can write annotations, so they count only if no pod has the UID itself.
 * @param node name of the kubelet's node
 */
export function findPod(pods: readonly V1Pod[], uid: string, node: string): V1Pod | undefined {
  const own = pods.find(({ metadata }) => metadata?.uid === uid);
  return own ?? pods.filter((pod) => isMirror(pod, uid, node)).reduce(older, undefined);
}

/**
 * The kubelet's UID of the pod. That of a static pod stays the same if its mirror pod is recreated.
 */
export function kubeletUid(pod: V1Pod): string {
  const { metadata, spec } = pod;
  const shown = metadata?.annotations?.[MIRROR_ANNOTATION] ?? '';
  return isMirror(pod, shown, spec?.nodeName ?? '') ? shown : (metadata?.uid ?? '');
}

/**
 * Whether the kubelet generated the UID: it belongs to a static pod, which runs even without a
 * mirror pod in the API server.
 */
export function isStatic(uid: string): boolean {
  return !uid.includes('-');
}

/**
 * Whether the pod is a mirror pod with this UID. A pod can become a mirror only at its creation, on
 * a node that it names. Users who may create pods can forge one, but a forged mirror is harmless:
 * - it runs nothing;
 * - the kubelet removes it soon, because no static pod has its name;
 * - the kubelet's list of slots names the real pod.
 */
function isMirror({ metadata, spec }: V1Pod, uid: string, node: string): boolean {
  const { annotations = {}, ownerReferences = [] } = metadata ?? {};
  const source = annotations[SOURCE];
  if (
    annotations[HASH] !== uid ||
    annotations[MIRROR_ANNOTATION] !== uid ||
    source === undefined ||
    source === 'api'
  )
    return false;
  const isOfNode = ownerReferences.some(
    ({ kind, name, controller }) => kind === 'Node' && name === node && controller === true,
  );
  return isOfNode && spec?.nodeName === node;
}

/** A copy of a mirror is younger than the original. */
function older(one: V1Pod | undefined, other: V1Pod): V1Pod {
  return one === undefined || madeAt(other) < madeAt(one) ? other : one;
}

/** Creation time in milliseconds. The API server's times are strings at runtime. */
function madeAt({ metadata }: V1Pod): number {
  return new Date(metadata?.creationTimestamp ?? Date.now()).getTime();
}
