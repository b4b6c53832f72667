import type { V1Pod } from '@kubernetes/client-node';
import { MIRROR_ANNOTATION } from '@nvidia-virtual/kubernetes/names';

/** What else a kubelet writes on the pod by which it shows a static pod to the API server. */
const [HASH, SOURCE] = ['hash', 'source'].map((name) => `kubernetes.io/config.${name}`) as [string, string];

/**
 * The pod that the kubelet calls by this UID, which is the API server's but for static pods. Annotations are anybody's to write, so that they
 * only count where no pod has the UID itself.
 * @param node of the kubelet.
 */
export function findPod(pods: readonly V1Pod[], uid: string, node: string): V1Pod | undefined {
  const own = pods.find(({ metadata }) => metadata?.uid === uid);
  return own ?? pods.filter((pod) => isMirror(pod, uid, node)).reduce(older, undefined);
}

/** The UID that the kubelet has for the pod: that of a static pod stays, whatever becomes of what shows it. */
export function kubeletUid(pod: V1Pod): string {
  const { metadata, spec } = pod;
  const shown = metadata?.annotations?.[MIRROR_ANNOTATION] ?? '';
  return isMirror(pod, shown, spec?.nodeName ?? '') ? shown : (metadata?.uid ?? '');
}

/** Whether a UID is one that a kubelet made: of a pod that it runs whether or not the API server has anything that shows it. */
export function isStatic(uid: string): boolean {
  return !uid.includes('-');
}

/**
 * A pod can be made a mirror only when it is created, and only on a node that it names; beyond that the API server lets everybody who may create
 * pods write what a kubelet writes. A forged one runs nothing, its kubelet removes it soon because no static pod has its name, and the
 * kubelet's list of slots names the true one.
 */
function isMirror({ metadata, spec }: V1Pod, uid: string, node: string): boolean {
  const { annotations = {}, ownerReferences = [] } = metadata ?? {};
  const source = annotations[SOURCE];
  if (annotations[HASH] !== uid || annotations[MIRROR_ANNOTATION] !== uid || source === undefined || source === 'api') return false;
  const isOfNode = ownerReferences.some(({ kind, name, controller }) => kind === 'Node' && name === node && controller === true);
  return isOfNode && spec?.nodeName === node;
}

/** Who copies a mirror comes later. */
function older(one: V1Pod | undefined, other: V1Pod): V1Pod {
  return one === undefined || madeAt(other) < madeAt(one) ? other : one;
}

/** In milliseconds. What the API server tells is text still. */
function madeAt({ metadata }: V1Pod): number {
  return new Date(metadata?.creationTimestamp ?? Date.now()).getTime();
}
