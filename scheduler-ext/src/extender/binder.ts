import { setTimeout as sleep } from 'node:timers/promises';
import type { V1Pod } from '@kubernetes/client-node';
import type { ApiError, ApiServer } from '@nvidia-virtual/kube-common/api-server';
import type { AssignedGpu, Assignment } from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { Strategy } from '@nvidia-virtual/kube-common/pod-request';
import { Backoff } from '@nvidia-virtual/service/backoff';
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import { type PodRecord, readPod } from '../cluster/pod.js';
import { SchedulerError } from '../errors.js';
import type { Demand } from '../placement/demand.js';
import { freeFor, holdingOf, type Placement, place } from '../placement/placement.js';
import { Judge } from '../placement/verdict.js';
import type { Groups } from './groups.js';
import type { BindArgs } from './messages.js';

interface BinderOptions {
  readonly api: ApiServer;
  readonly cluster: Cluster;
  readonly groups: Pick<Groups, 'binding'>;
  readonly strategy: Strategy;
  readonly slotCores: number | undefined;
  readonly logger: Logger;
}

/**
 * In milliseconds. Must be less than the time between a leader's renewDeadline, after which it
 * sends no requests, and the end of its lease, when its successor starts. So the last binding of
 * the old leader is complete or aborted by then.
 */
export const BINDING_TIMEOUT = 4000;
const [NOT_FOUND, CONFLICT] = [404, 409];
/**
 * Milliseconds within which an aborted binding can still take effect, even after the pod was seen
 * unbound: the API server may have it queued. etcd times out after some 7 s.
 */
const LATEST = 10_000;

/** Binds pods: chooses and reserves GPUs atomically, then writes the binding to the API server. */
export class Binder {
  readonly #options: BinderOptions;
  readonly #end = new AbortController();

  constructor(options: BinderOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#end.abort();
  }

  /** @throws SchedulerError; then the pod holds no slots, unless the outcome is still unknown */
  async bind(args: BindArgs): Promise<void> {
    const { cluster } = this.#options;
    // Only the API server knows the outcome of an earlier attempt: the watch may be behind.
    const known = cluster.isReserved(args.PodUID) ? undefined : cluster.pod(args.PodUID);
    const pod = known ?? (await this.#fetch(args));
    const name = nameOf(args);
    // Already bound: kube-scheduler missed the answer of an earlier attempt, or another scheduler
    // bound the pod.
    if (pod.node === args.Node) return;
    if (pod.node !== undefined)
      throw new SchedulerError('POD_BOUND', { pod: name, node: args.Node, bound: pod.node });
    if (cluster.isReserved(pod.uid)) {
      throw new SchedulerError('BIND_UNKNOWN', {
        pod: name,
        node: args.Node,
        reason: 'an earlier attempt is not settled yet.',
      });
    }
    const assignment = this.#reserve(pod, args);
    try {
      await this.#post(args, assignment);
      cluster.confirm(pod.uid);
    } catch (error) {
      await this.#failed(args, error as ApiError);
    }
  }

  /** Synchronous, so the choice and the reservation are atomic. */
  #reserve(pod: PodRecord, args: BindArgs): Assignment {
    const { cluster, strategy } = this.#options;
    const { demand, uid, priority } = pod;
    const name = nameOf(args);
    this.#options.groups.binding(pod);
    cluster.unclaim(uid);
    if (demand === undefined) {
      throw new SchedulerError('BIND_FAILED', {
        pod: name,
        node: args.Node,
        reason: pod.problem ?? 'it asks for nothing.',
      });
    }
    const node = cluster.node(args.Node);
    const placement = node && place(demand, node.gpus, freeFor({ uid, priority }, node), strategy);
    if (placement === undefined) {
      const verdict = new Judge(demand, strategy).judge(node, pod);
      const reason = 'sentence' in verdict ? verdict.sentence : 'its GPUs changed';
      throw new SchedulerError('SLOTS_TAKEN', { pod: name, node: args.Node, reason });
    }
    cluster.reserve(pod, args.Node, holdingOf(demand, placement));
    return assignmentFrom(demand, placement);
  }

  /**
   * Writes the binding. Its UID excludes a later pod of the same name. The API server copies its
   * annotation to the pod atomically.
   */
  async #post(
    { PodNamespace, PodName, PodUID, Node }: BindArgs,
    assignment: Assignment,
  ): Promise<void> {
    const annotations = { [ANNOTATION.assigned]: JSON.stringify(assignment) };
    const body = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: PodName, namespace: PodNamespace, uid: PodUID, annotations },
      target: { apiVersion: 'v1', kind: 'Node', name: Node },
    };
    const path = `/api/v1/namespaces/${PodNamespace}/pods/${PodName}/binding`;
    await this.#options.api.request({ method: 'POST', path, body, timeout: BINDING_TIMEOUT });
  }

  async #failed(args: BindArgs, error: ApiError): Promise<never> {
    const { cluster, logger } = this.#options;
    const figures = { pod: nameOf(args), node: args.Node, reason: error.message };
    if (isDefinite(error)) {
      cluster.release(args.PodUID);
      if (error.status === NOT_FOUND) throw new SchedulerError('POD_GONE', figures);
      throw new SchedulerError('BIND_FAILED', figures);
    }
    logger.warn(figures, 'the result of a binding is unknown; the pod is read');
    void this.#settle(args);
    throw new SchedulerError('BIND_UNKNOWN', figures);
  }

  /**
   * Polls the pod until it is bound, or can no longer be bound. The slots stay reserved until then.
   */
  async #settle(args: BindArgs): Promise<void> {
    const { cluster } = this.#options;
    const { signal } = this.#end;
    const latest = performance.now() + LATEST;
    const backoff = new Backoff({ first: 500, longest: 5000 });
    while (cluster.isReserved(args.PodUID) && !signal.aborted) {
      const asked = performance.now();
      const pod = await this.#fetch(args).catch((error: Error) =>
        error instanceof SchedulerError ? ('gone' as const) : undefined,
      );
      // The watch is newer than this answer: a deleted pod must not be added again.
      if (!cluster.isReserved(args.PodUID)) return;
      if (pod === 'gone') cluster.release(args.PodUID);
      else if (pod?.node !== undefined) cluster.putPod(pod);
      // The API server does not bind a pod that is being deleted.
      else if (pod && (asked > latest || pod.leavesAt !== undefined)) cluster.release(args.PodUID);
      else await sleep(backoff.next(), undefined, { signal }).catch(() => {});
    }
  }

  async #fetch(args: BindArgs): Promise<PodRecord> {
    const path = `/api/v1/namespaces/${args.PodNamespace}/pods/${args.PodName}`;
    const pod = await this.#options.api
      .request<V1Pod>({ path, timeout: BINDING_TIMEOUT })
      .catch((error: ApiError) => {
        throw error.status === NOT_FOUND
          ? new SchedulerError('POD_GONE', { pod: nameOf(args) })
          : error;
      });
    const record = readPod(pod, this.#options.slotCores);
    if (record === undefined) throw new SchedulerError('POD_ASKS_NOTHING', { pod: nameOf(args) });
    if (record.uid !== args.PodUID) throw new SchedulerError('POD_REPLACED', { pod: nameOf(args) });
    return record;
  }
}

function assignmentFrom(demand: Demand, placement: Placement): Assignment {
  const assigned = (index: number, slots: number): AssignedGpu[] =>
    (placement[index] ?? []).map(({ uuid, model }) => {
      const taken = demand.takes(index, model);
      return { gpu: uuid, slots, ...(taken > slots && { taken }) };
    });
  return {
    version: 1,
    containers: Object.fromEntries(
      demand.needs.map(({ container, slots }, index) => [container, assigned(index, slots)]),
    ),
  };
}

/** Whether the binding had no effect. Unknown after a 409, a 5xx or a timeout. */
function isDefinite({ status }: ApiError): boolean {
  return status !== undefined && status >= 400 && status < 500 && status !== CONFLICT;
}

function nameOf({ PodNamespace, PodName }: BindArgs): string {
  return `${PodNamespace}/${PodName}`;
}
