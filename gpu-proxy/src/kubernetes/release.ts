import type { V1Pod } from '@kubernetes/client-node';
import type { Logger } from 'pino';
import type { Allocation } from '../allocation.js';
import { systemReason } from '../errors.js';
import type { GpuNode } from '../node.js';
import type { Grants } from './grants.js';
import { isOver, type NodePods } from './node-pods.js';
import { isStatic, kubeletUid } from './pod-identity.js';
import { type Holders, holdersOf, isHolder, type PodResources, type SlotHolder } from './pod-resources.js';
import type { GrantedPod, ServedGrant } from './served-grant.js';
import { endingInitContainers } from './tenant.js';

export interface ReleaseOptions {
  readonly node: GpuNode;
  readonly grants: Grants;
  readonly pods: NodePods;
  readonly podResources: Pick<PodResources, 'holders'>;
  readonly logger: Logger;
  readonly lookEveryMs?: number;
}

const LOOK_EVERY_MS = 5000;
/** Many changes come at once: they are looked at together. */
const TOGETHER_MS = 100;
/** A pod that was deleted by force may have containers for a while that the kubelet ends; then its sessions are ended here. */
const END_GRACE_MS = 60_000;
/** A grant of which the kubelet says nothing for so long came from an Allocate whose pod was not admitted. */
const UNKNOWN_GRACE_MS = 10 * 60_000;

/** The kubelet writes whole seconds. */
const CLOCK_MS = 1000;

/**
 * The kubelet never says that it takes something back. So what a pod had is removed when the API server has no such pod any more, or one that
 * ran to its end; a grant that nobody used goes with the pod to which the kubelet says it gave it. Looked at again and again, so that nothing
 * is left after a crash of anybody.
 */
export class Release {
  readonly #options: ReleaseOptions;
  readonly #timer: NodeJS.Timeout;
  /** Since when the pod of an allocation is gone, in milliseconds. */
  readonly #gone = new Map<string, number>();
  readonly #releasing = new Set<string>();
  #soon: NodeJS.Timeout | undefined;
  #looking = false;

  constructor(options: ReleaseOptions) {
    this.#options = options;
    options.pods.on('changed', this.#lookSoon);
    options.node.on('changed', this.#lookSoon);
    this.#timer = setInterval(this.#lookSoon, options.lookEveryMs ?? LOOK_EVERY_MS).unref();
  }

  end(): void {
    this.#options.pods.off('changed', this.#lookSoon);
    this.#options.node.off('changed', this.#lookSoon);
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
  }

  readonly #lookSoon = () => {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      void this.#look().catch((error: Error) => this.#options.logger.error(error.message));
    }, TOGETHER_MS).unref();
  };

  /** Nothing is concluded from what is not known. */
  async #look(): Promise<void> {
    const { node, grants, pods, podResources } = this.#options;
    if (this.#looking || !pods.synced) return;
    this.#looking = true;
    try {
      const asked = Date.now();
      const holders = await podResources.holders().catch(() => undefined);
      for (const allocation of node.allocations) this.#lookAt(allocation, holders);
      // Of slots that were granted since, the kubelet has named who had them before.
      const known = grants.all.filter(({ createdAt }) => Date.parse(createdAt) < asked);
      for (const grant of known) this.#lookAtGrant(grant, holders);
    } finally {
      this.#looking = false;
    }
  }

  #lookAt(allocation: Allocation, holders: Holders | undefined): void {
    const { owner } = allocation.specification;
    if (!owner || !allocation.granted || this.#lives(owner.podUid) || this.#isStaticStill(allocation, owner, holders)) {
      this.#gone.delete(allocation.id);
      return;
    }
    const since = this.#gone.get(allocation.id) ?? Date.now();
    this.#gone.set(allocation.id, since);
    if (!allocation.specification.draining) allocation.drain();
    if (allocation.sessionCount === 0 || Date.now() - since > END_GRACE_MS || !stillHeld(allocation, owner, holders))
      this.#release(allocation);
  }

  /** What shows a static pod can be deleted, and is made again; the pod goes on beneath its kubelet, which alone knows. */
  #isStaticStill(allocation: Allocation, owner: GrantedPod, holders: Holders | undefined): boolean {
    const { podUid } = owner;
    return isStatic(podUid) && this.#options.pods.find(podUid) === undefined && stillHeld(allocation, owner, holders);
  }

  #release(allocation: Allocation): void {
    const { node, logger } = this.#options;
    if (this.#releasing.has(allocation.id)) return;
    this.#releasing.add(allocation.id);
    logger.info({ allocation: allocation.id, owner: allocation.specification.owner }, 'the pod is gone: what it had is given back');
    node
      .release(allocation)
      .catch((error) => logger.error({ allocation: allocation.id }, `What the pod had could not be removed: ${systemReason(error)}.`))
      .finally(() => {
        this.#releasing.delete(allocation.id);
        this.#gone.delete(allocation.id);
      });
  }

  #lookAtGrant(grant: ServedGrant, holders: Holders | undefined): void {
    if (grant.busy) return;
    const { grants, logger } = this.#options;
    const pod = grant.pod ?? this.#podOf(grant, holders);
    if (pod ? this.#lives(pod.podUid) || this.#mayBeSuccessors(grant, pod, holders) : this.#mayBeNeeded(grant, holders)) return;
    logger.info(
      { allocation: grant.id, slots: grant.slots, pod },
      'the grant is removed: its pod is gone, or the kubelet knows it no more',
    );
    grants.remove(grant);
  }

  /**
   * Written down as soon as it is known: later the slots may be another pod's. The kubelet says a name alone, and in an old list of pods it is
   * that of a predecessor. Of slots that two pods have, it does not say which one has this grant.
   */
  #podOf(grant: ServedGrant, holders: Holders | undefined): GrantedPod | undefined {
    const [holder, ...others] = holders ? holdersOf(grant.slots, holders) : [];
    if (holder === undefined || others.some((other) => !isHolder(other, holder))) return undefined;
    const pod = this.#options.pods.trouble === undefined ? this.#named(holder) : undefined;
    return pod && !isOver(pod) ? tag(grant, holder, pod) : undefined;
  }

  /**
   * Whether the grant is, or may be, of the pod that took the place and the name of the one that was written down: the kubelet hears of a pod
   * before us, so that its name stood for the former one here when its slots were looked up.
   */
  #mayBeSuccessors(grant: ServedGrant, former: GrantedPod, holders: Holders | undefined): boolean {
    if (!holders || this.#options.pods.trouble !== undefined) return true;
    const holder = holdersOf(grant.slots, holders).find((one) => isHolder(one, former));
    if (holder === undefined) return false;
    const successor = this.#named(holder);
    if (!successor) return true;
    if (isOver(successor) || !startedSoonAfter(successor, Date.parse(grant.createdAt))) return false;
    tag(grant, holder, successor);
    return true;
  }

  #named(holder: SlotHolder): V1Pod | undefined {
    return this.#options.pods.all.find(({ metadata }) => metadata?.name === holder.pod && metadata.namespace === holder.namespace);
  }

  /** The kubelet does not list what an init container alone has. */
  #mayBeNeeded({ slots, createdAt }: ServedGrant, holders: Holders | undefined): boolean {
    if (!holders || Date.now() - Date.parse(createdAt) < UNKNOWN_GRACE_MS) return true;
    if (slots.some((slot) => holders.has(slot))) return true;
    return this.#options.pods.all.some(
      (pod) => !isOver(pod) && endingInitContainers(pod, slots.length).length > 0 && wasAdmittedWith(pod, Date.parse(createdAt)),
    );
  }

  #lives(podUid: string): boolean {
    const pod: V1Pod | undefined = this.#options.pods.find(podUid);
    return pod !== undefined && !isOver(pod);
  }
}

/**
 * Whether a grant of that time may be the pod's. The kubelet grants all that a pod gets when it admits it, writes down at once that it has started,
 * and later that it is initialised. A sandbox that is lost takes the latter back: then its init containers run again, with the same grant.
 */
function wasAdmittedWith(pod: V1Pod, grantedAt: number): boolean {
  const initialized = pod.status?.conditions?.find(({ type, status: value }) => type === 'Initialized' && value === 'True');
  const initializedAt = timeOf(initialized?.lastTransitionTime) ?? Number.POSITIVE_INFINITY;
  return initializedAt + CLOCK_MS > grantedAt && startedSoonAfter(pod, grantedAt);
}

/** Else the grant is of a pod that had the same slots before. */
function startedSoonAfter({ status }: V1Pod, grantedAt: number): boolean {
  return (timeOf(status?.startTime) ?? grantedAt) < grantedAt + UNKNOWN_GRACE_MS;
}

function tag(grant: ServedGrant, { namespace, pod: name }: SlotHolder, pod: V1Pod): GrantedPod {
  grant.pod = { namespace, pod: name, podUid: kubeletUid(pod) };
  return grant.pod;
}

/** In milliseconds. What the API server tells is text still. */
function timeOf(time: Date | string | undefined): number | undefined {
  return time === undefined ? undefined : new Date(time).getTime();
}

/** Without the kubelet's word, they may still be. */
function stillHeld({ specification: { slots = [] } }: Allocation, owner: GrantedPod, holders: Holders | undefined): boolean {
  return holders === undefined || holdersOf(slots, holders).some((holder) => isHolder(holder, owner));
}
