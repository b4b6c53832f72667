import type { V1Pod } from '@kubernetes/client-node';
import { systemReason } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuNode } from '../node.js';
import type { Grants } from './grants.js';
import { isOver, type NodePods } from './node-pods.js';
import { isStatic, kubeletUid } from './pod-identity.js';
import {
  type Holders,
  holdersOf,
  isHolder,
  type PodResources,
  type SlotHolder,
} from './pod-resources.js';
import type { GrantedPod, ServedGrant } from './served-grant.js';
import { endingInitContainers } from './tenant.js';

interface ReleaseOptions {
  readonly node: GpuNode;
  readonly grants: Grants;
  readonly pods: NodePods;
  readonly podResources: Pick<PodResources, 'holders'>;
  readonly logger: Logger;
  readonly lookEveryMs?: number;
}

const LOOK_EVERY_MS = 5000;
/** Debounce of changes. */
const TOGETHER_MS = 100;
/**
 * After a forced deletion, the containers of a pod can run until the kubelet stops them. After this
 * time, their sessions are killed.
 */
const END_GRACE_MS = 60_000;
/**
 * A grant that the kubelet does not list for this long belongs to an Allocate call whose pod was
 * not admitted.
 */
const UNKNOWN_GRACE_MS = 10 * 60_000;
/**
 * The kubelet gives a slot again only when its former pod is refused or gone. So after this many
 * newer grants of a slot, a grant that it does not list has the short grace. A tenant whose pods
 * are refused would otherwise fill the node with grants.
 */
const MOST_NEWER_GRANTS = 8;
/**
 * All grants of a pod are made together, so one with many init containers has many of a slot. The
 * pod must be known by now: a dead watch of pods is noticed after half a minute.
 */
const SHORT_GRACE_MS = 60_000;

/** Resolution of the kubelet's times. */
const CLOCK_MS = 1000;

/**
 * Garbage collection of allocations and grants, because the kubelet does not report the end of a
 * grant. An allocation is removed when the API server no longer lists its pod, or lists it as
 * terminated. An unbound grant is removed with the pod that has its slots in the kubelet's list.
 * Repeated periodically, so nothing remains after a crash of any component.
 */
export class Release {
  readonly #options: ReleaseOptions;
  readonly #timer: NodeJS.Timeout;
  /** Time in milliseconds when the pod of an allocation was first missing. */
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

  /** Does nothing before the first complete list of pods. */
  async #look(): Promise<void> {
    const { node, grants, pods, podResources } = this.#options;
    if (this.#looking || !pods.synced) return;
    this.#looking = true;
    try {
      const asked = Date.now();
      const holders = await podResources.holders().catch(() => undefined);
      for (const allocation of node.allocations) this.#lookAt(allocation, holders);
      // Skip grants younger than the list: it may name the former holders of their slots.
      const known = grants.all.filter(({ createdAt }) => Date.parse(createdAt) < asked);
      const superseded = supersededOf(known);
      for (const grant of known) this.#lookAtGrant(grant, holders, superseded.has(grant));
    } finally {
      this.#looking = false;
    }
  }

  #lookAt(allocation: Allocation, holders: Holders | undefined): void {
    const { owner } = allocation.specification;
    if (
      !owner ||
      !allocation.granted ||
      this.#lives(owner.podUid) ||
      this.#isStaticStill(allocation, owner, holders)
    ) {
      this.#gone.delete(allocation.id);
      return;
    }
    const since = this.#gone.get(allocation.id) ?? Date.now();
    this.#gone.set(allocation.id, since);
    if (!allocation.specification.draining) allocation.drain();
    if (
      allocation.sessionCount === 0 ||
      Date.now() - since > END_GRACE_MS ||
      !stillHeld(allocation, owner, holders)
    )
      this.#release(allocation);
  }

  /**
   * A mirror pod can be deleted and recreated while its static pod runs. Only the kubelet knows.
   */
  #isStaticStill(allocation: Allocation, owner: GrantedPod, holders: Holders | undefined): boolean {
    const { podUid } = owner;
    return (
      isStatic(podUid) &&
      this.#options.pods.find(podUid) === undefined &&
      stillHeld(allocation, owner, holders)
    );
  }

  #release(allocation: Allocation): void {
    const { node, logger } = this.#options;
    if (this.#releasing.has(allocation.id)) return;
    this.#releasing.add(allocation.id);
    logger.info(
      { allocation: allocation.id, owner: allocation.specification.owner },
      'the pod is gone: its allocation is deleted',
    );
    node
      .release(allocation)
      .catch((error) =>
        logger.error(
          { allocation: allocation.id },
          `The allocation of the pod could not be removed: ${systemReason(error)}.`,
        ),
      )
      .finally(() => {
        this.#releasing.delete(allocation.id);
        this.#gone.delete(allocation.id);
      });
  }

  #lookAtGrant(grant: ServedGrant, holders: Holders | undefined, superseded: boolean): void {
    if (grant.busy) return;
    const { grants, logger } = this.#options;
    const pod = grant.pod ?? this.#podOf(grant, holders);
    if (
      pod
        ? this.#lives(pod.podUid) || this.#mayBeSuccessors(grant, pod, holders)
        : this.#mayBeNeeded(grant, holders, superseded)
    )
      return;
    logger.info(
      { allocation: grant.id, slots: grant.slots, pod },
      'the grant is removed: its pod is gone, or the kubelet no longer lists it',
    );
    grants.remove(grant);
  }

  /**
   * Finds the pod of a grant and records it at once, because another pod may have the slots later.
   * Undefined if the list of pods is stale: the kubelet names pods without UID, and the name may be
   * a predecessor's. Undefined if two pods have the slots.
   */
  #podOf(grant: ServedGrant, holders: Holders | undefined): GrantedPod | undefined {
    const [holder, ...others] = holders ? holdersOf(grant.slots, holders) : [];
    if (holder === undefined || others.some((other) => !isHolder(other, holder))) return undefined;
    const pod = this.#options.pods.trouble === undefined ? this.#named(holder) : undefined;
    return pod && !isOver(pod) ? tag(grant, holder, pod) : undefined;
  }

  /**
   * Whether the grant may belong to a successor of the recorded pod with the same name. The kubelet
   * learns of a pod before gpu-proxy, so the name may have meant the former pod at the time of the
   * lookup.
   */
  #mayBeSuccessors(grant: ServedGrant, former: GrantedPod, holders: Holders | undefined): boolean {
    if (!holders || this.#options.pods.trouble !== undefined) return true;
    const holder = holdersOf(grant.slots, holders).find((one) => isHolder(one, former));
    if (holder === undefined) return false;
    const successor = this.#named(holder);
    if (!successor) return true;
    const grantedAt = Date.parse(grant.createdAt);
    if (isOver(successor) || !startedWithin(UNKNOWN_GRACE_MS, successor, grantedAt)) return false;
    tag(grant, holder, successor);
    return true;
  }

  #named(holder: SlotHolder): V1Pod | undefined {
    return this.#options.pods.all.find(
      ({ metadata }) => metadata?.name === holder.pod && metadata.namespace === holder.namespace,
    );
  }

  /** Whether a pod may need the grant. The kubelet does not list slots of init containers alone. */
  #mayBeNeeded(
    { slots, createdAt }: ServedGrant,
    holders: Holders | undefined,
    superseded: boolean,
  ): boolean {
    const short = superseded && this.#options.pods.trouble === undefined;
    const grace = short ? SHORT_GRACE_MS : UNKNOWN_GRACE_MS;
    if (!holders || Date.now() - Date.parse(createdAt) < grace) return true;
    if (slots.some((slot) => holders.has(slot))) return true;
    return this.#options.pods.all.some(
      (pod) =>
        !isOver(pod) &&
        endingInitContainers(pod, slots.length).length > 0 &&
        wasAdmittedWith(pod, Date.parse(createdAt), grace),
    );
  }

  #lives(podUid: string): boolean {
    const pod: V1Pod | undefined = this.#options.pods.find(podUid);
    return pod !== undefined && !isOver(pod);
  }
}

/** The grants with a slot of which there are many newer ones. */
function supersededOf(grants: readonly ServedGrant[]): ReadonlySet<ServedGrant> {
  const newer = new Map<string, number>();
  const superseded = new Set<ServedGrant>();
  const time = ({ createdAt }: ServedGrant) => Date.parse(createdAt);
  for (const grant of grants.toSorted((a, b) => time(b) - time(a))) {
    if (grant.slots.some((slot) => (newer.get(slot) ?? 0) >= MOST_NEWER_GRANTS))
      superseded.add(grant);
    for (const slot of grant.slots) newer.set(slot, (newer.get(slot) ?? 0) + 1);
  }
  return superseded;
}

/**
 * Whether a grant of that time can belong to the pod. The kubelet makes all grants of a pod at its
 * admission, then sets the start time. If the sandbox is lost, the init containers run again with
 * the same grant.
 */
function wasAdmittedWith(pod: V1Pod, grantedAt: number, grace: number): boolean {
  const startedAt = timeOf(pod.status?.startTime) ?? grantedAt;
  return grantedAt < startedAt + CLOCK_MS && startedWithin(grace, pod, grantedAt);
}

/** False if the grant belongs to an earlier pod with the same slots. */
function startedWithin(grace: number, { status }: V1Pod, grantedAt: number): boolean {
  return (timeOf(status?.startTime) ?? grantedAt) < grantedAt + grace;
}

function tag(grant: ServedGrant, { namespace, pod: name }: SlotHolder, pod: V1Pod): GrantedPod {
  grant.pod = { namespace, pod: name, podUid: kubeletUid(pod) };
  return grant.pod;
}

/** Time in milliseconds. The API server's times are strings at runtime. */
function timeOf(time: Date | string | undefined): number | undefined {
  return time === undefined ? undefined : new Date(time).getTime();
}

/** Whether the owner holds one of the slots; true if the kubelet does not answer. */
function stillHeld(
  { specification: { slots = [] } }: Allocation,
  owner: GrantedPod,
  holders: Holders | undefined,
): boolean {
  return (
    holders === undefined || holdersOf(slots, holders).some((holder) => isHolder(holder, owner))
  );
}
