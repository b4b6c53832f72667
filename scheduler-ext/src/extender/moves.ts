import type { ApiError, ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { Backoff } from '@nvidia-virtual/service/backoff';
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import type { PodRecord } from '../cluster/pod.js';
import { sentence } from '../errors.js';
import type { Leadership } from './leadership.js';
import { type MoveStep, nextStep } from './move-step.js';
import { MoveTime } from './move-time.js';
import { warnPod } from './pod-event.js';

interface MovesOptions {
  readonly api: Pick<ApiServer, 'request'>;
  readonly cluster: Cluster;
  readonly leadership: Pick<Leadership, 'state'>;
  readonly logger: Logger;
  /** Undefined after all nodes and pods were listed. */
  readonly condition: () => string | undefined;
  readonly everyMs?: number;
  /** Milliseconds after which a pod that has not arrived goes back. @default 10 minutes */
  readonly deadlineMs?: number;
}

type Refusal = Extract<MoveStep, { readonly refusal: string }>;
type Change = Exclude<MoveStep, Refusal>;

/** A pod whose changes the API server refuses. */
interface Failure {
  readonly backoff: Backoff;
  /** When to try again, by performance.now(). */
  next: number;
}

const LOOK_MS = 1000;
/** A pod that moves holds slots of two GPUs, and its work may never end. */
const DEADLINE_MS = 10 * 60_000;
/** With the read of the lease, shorter than the time in which a new leader binds nothing. */
const WRITE_TIMEOUT_MS = 3000;
/** Limit on the warnings of a pod within that time. */
const MOST_WARNINGS = 10;
const WARNINGS_MS = 60_000;
const CONFLICT = 409;
const BACKOFF = { first: 1000, longest: 60_000 };

/**
 * Assigns another GPU of their node to pods that ask for it, or whose GPU is drained. Reserves its
 * slots before it writes. Everything that outlives this process is in the pod's assignment.
 */
export class Moves {
  readonly #options: MovesOptions;
  readonly #timer: NodeJS.Timeout;
  /** UIDs of pods for which a second GPU was reserved. */
  readonly #begun = new Set<string>();
  /** Latest refusal of a pod, by UID. */
  readonly #told = new Map<string, string>();
  /** Times of a pod's latest warnings, keyed by its UID. A tenant can cause any number. */
  readonly #warned = new Map<string, readonly number[]>();
  readonly #time: MoveTime;
  /** Keyed by UID. A tenant causes them by annotations that leave no room for an assignment. */
  readonly #failures = new Map<string, Failure>();
  #looking = false;

  constructor(options: MovesOptions) {
    this.#options = options;
    this.#time = new MoveTime(options.deadlineMs ?? DEADLINE_MS);
    this.#timer = setInterval(() => void this.#look(), options.everyMs ?? LOOK_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const { cluster, condition, leadership } = this.#options;
    if (this.#looking || condition() !== undefined) return;
    for (const pod of cluster.pods()) this.#time.note(pod);
    const concerned = [...cluster.pods()].filter((pod) => this.#stepOf(pod) !== undefined);
    this.#forget(concerned);
    if (concerned.length === 0) return;
    this.#looking = true;
    try {
      const state = await leadership.state();
      if (state === 'leads') await Promise.all(concerned.map(({ uid }) => this.#proceed(uid)));
      // The leader sells the slots of this extender's reservations.
      else if (state === 'follows') for (const uid of this.#begun) this.#abandon(uid);
    } finally {
      this.#looking = false;
    }
  }

  #stepOf(pod: PodRecord): MoveStep | undefined {
    const node = pod.node === undefined ? undefined : this.#options.cluster.node(pod.node);
    const { moveTo, assignment } = pod;
    // Most pods stay, and there are thousands.
    if (moveTo === undefined && assignment?.former === undefined && !node?.drains) return undefined;
    const limits = { isOverdue: this.#time.isOverdue(pod.uid), rests: this.#time.rests(pod) };
    return nextStep(pod, node, limits);
  }

  /** Up to the request, it is synchronous, so the choice and the reservation are atomic. */
  async #proceed(uid: string): Promise<void> {
    const { cluster } = this.#options;
    const pod = cluster.pod(uid);
    const step = pod && this.#stepOf(pod);
    if (!step) return;
    if ('refusal' in step) return this.#refuse(pod, step);
    if (performance.now() < (this.#failures.get(uid)?.next ?? 0)) return;
    if (step.second) {
      this.#begun.add(uid);
      cluster.holdAlso(pod, step.second);
    }
    const { overdue } = step;
    if (overdue !== undefined) this.#time.noteOverdue(pod);
    const isWritten = await this.#write(pod, step);
    if (isWritten && overdue !== undefined) await this.#warn(pod, 'MOVE_OVERDUE', { gpu: overdue });
  }

  /**
   * The version of the pod excludes that two writes take effect. As long as the watch shows the
   * same version, an unknown outcome is tried again.
   * @returns whether the API server has confirmed it
   */
  async #write(pod: PodRecord, { annotations, second }: Change): Promise<boolean> {
    const { logger } = this.#options;
    const { uid, version: resourceVersion } = pod;
    const figures = { pod: `${pod.namespace}/${pod.name}`, annotations };
    try {
      const body = { metadata: { uid, resourceVersion, annotations } };
      await this.#patch(pod, 'merge-patch', body).catch((error: ApiError) => {
        const assigned = annotations[ANNOTATION.assigned];
        if (error.status !== CONFLICT || second || !assigned) throw error;
        return this.#patch(pod, 'json-patch', replacement(pod, assigned));
      });
      this.#failures.delete(uid);
      logger.info(figures, 'the assignment of a pod that moves was written');
      return true;
    } catch (error) {
      const { status = 0, message } = error as ApiError;
      logger.warn({ ...figures, reason: message }, 'the assignment of a pod was not written');
      if (status < 400 || status >= 500 || status === CONFLICT) return false;
      this.#abandon(uid);
      const backoff = this.#failures.get(uid)?.backoff ?? new Backoff(BACKOFF);
      this.#failures.set(uid, { backoff, next: performance.now() + backoff.next() });
      const [gpu] = second?.keys() ?? [];
      const refusal = `the API server refuses to change its annotations: ${message}`;
      if (gpu !== undefined) await this.#refuse(pod, { gpu, refusal });
      return false;
    }
  }

  #patch(
    { namespace, name }: PodRecord,
    format: 'merge-patch' | 'json-patch',
    body: object,
  ): Promise<unknown> {
    return this.#options.api.request({
      ...{ method: 'PATCH', contentType: `application/${format}+json` },
      path: `/api/v1/namespaces/${namespace}/pods/${name}/status`,
      ...{ body, timeout: WRITE_TIMEOUT_MS },
    });
  }

  #abandon(uid: string): void {
    this.#begun.delete(uid);
    this.#options.cluster.letGo(uid);
  }

  async #refuse(pod: PodRecord, { gpu, refusal: reason, drained }: Refusal): Promise<void> {
    if (this.#told.get(pod.uid) === `${gpu} ${reason}` || !this.#mayWarn(pod)) return;
    this.#told.set(pod.uid, `${gpu} ${reason}`);
    await this.#warn(pod, drained ? 'DRAINED_STAYS' : 'POD_STAYS', { gpu, reason });
  }

  async #warn(
    pod: PodRecord,
    code: 'POD_STAYS' | 'DRAINED_STAYS' | 'MOVE_OVERDUE',
    { gpu, ...more }: { readonly gpu: string; readonly reason?: string },
  ): Promise<void> {
    const { api, logger } = this.#options;
    this.#warned.set(pod.uid, [...this.#recentWarnings(pod), performance.now()]);
    const name = `${pod.namespace}/${pod.name}`;
    const message = sentence(code, { pod: name, gpu, ...more });
    logger.info({ pod: name }, message);
    await warnPod(api, pod, { reason: 'GpuNotMoved', message, subject: code }).catch(
      (error: Error) => {
        this.#told.delete(pod.uid);
        logger.warn({ pod: name }, error.message);
      },
    );
  }

  /** Limits warnings. A later look warns again if the reason still holds. */
  #mayWarn(pod: PodRecord): boolean {
    return this.#recentWarnings(pod).length < MOST_WARNINGS;
  }

  #recentWarnings({ uid }: PodRecord): number[] {
    const since = performance.now() - WARNINGS_MS;
    return (this.#warned.get(uid) ?? []).filter((at) => at > since);
  }

  /** A refusal is told again if it recurs later. */
  #forget(concerned: readonly PodRecord[]): void {
    const uids = new Set(concerned.map(({ uid }) => uid));
    for (const uid of this.#told.keys()) if (!uids.has(uid)) this.#told.delete(uid);
    const { cluster } = this.#options;
    for (const uid of this.#begun) if (!cluster.holdsAlso(uid)) this.#begun.delete(uid);
    for (const uid of this.#failures.keys()) if (!uids.has(uid)) this.#failures.delete(uid);
    for (const uid of this.#warned.keys()) if (!cluster.pod(uid)) this.#warned.delete(uid);
    this.#time.retain((uid) => cluster.pod(uid) !== undefined);
  }
}

/**
 * Replaces an assignment, whatever else of the pod has changed: a tenant that changes its pod all
 * the time must not keep slots that way. Each assignment of a pod is another text, so it has no
 * effect after a later write.
 */
function replacement({ uid, assignmentText }: PodRecord, assigned: string): object[] {
  const path = `/metadata/annotations/${ANNOTATION.assigned.replace('/', '~1')}`;
  return [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path, value: assignmentText },
    { op: 'replace', path, value: assigned },
  ];
}
