import { setTimeout as sleep } from 'node:timers/promises';
import type { V1Pod } from '@kubernetes/client-node';
import type { ApiError, ApiServer } from '@nvidia-virtual/kubernetes/api-server';
import type { AssignedGpu, Assignment } from '@nvidia-virtual/kubernetes/assignment';
import { ANNOTATION } from '@nvidia-virtual/kubernetes/names';
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import { type PodRecord, readPod } from '../cluster/pod.js';
import { SchedulerError } from '../errors.js';
import type { Demand } from '../placement/demand.js';
import { freeFor, holdingOf, type Placement, place, type Strategy } from '../placement/placement.js';
import { Judge } from '../placement/verdict.js';
import type { BindArgs } from './messages.js';

export interface BinderOptions {
  readonly api: ApiServer;
  readonly cluster: Cluster;
  readonly strategy: Strategy;
  readonly logger: Logger;
}

/**
 * In milliseconds. Less than what lies between a leader's renewDeadline, after which it asks for nothing any more, and the end of its lease, when
 * its successor may begin: what this one asked for last has then happened, or never will.
 */
export const BINDING_TIMEOUT = 4000;
const [NOT_FOUND, CONFLICT] = [404, 409];
const LONGEST_PAUSE = 5000;
/**
 * A binding that was given up may still be held by the API server, and happen after the pod was seen unbound. It ends within this time, in
 * milliseconds: etcd gives up after some 7 s.
 */
const LATEST = 10_000;

/** Binds pods: chooses the GPUs and reserves them in one step, then lets the API server know. */
export class Binder {
  readonly #options: BinderOptions;
  readonly #end = new AbortController();

  constructor(options: BinderOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#end.abort();
  }

  /** @throws SchedulerError; then the pod holds no slots, unless the outcome is not known yet. */
  async bind(args: BindArgs): Promise<void> {
    const { cluster } = this.#options;
    const pod = cluster.pod(args.PodUID) ?? (await this.#fetch(args));
    const name = nameOf(args);
    // An earlier attempt of which kube-scheduler did not hear, or somebody else: what the pod holds is known, and nothing is to be chosen.
    if (pod.node === args.Node) return;
    if (pod.node !== undefined) throw new SchedulerError('POD_BOUND', { pod: name, node: args.Node, bound: pod.node });
    if (cluster.isReserved(pod.uid)) {
      throw new SchedulerError('BIND_UNKNOWN', { pod: name, node: args.Node, reason: 'an earlier attempt is not settled yet.' });
    }
    const assignment = this.#reserve(pod, args);
    try {
      await this.#post(args, assignment);
      cluster.confirm(pod.uid);
    } catch (error) {
      await this.#failed(args, error as ApiError);
    }
  }

  /** Nothing waits in here, so nobody comes in between. */
  #reserve(pod: PodRecord, args: BindArgs): Assignment {
    const { cluster, strategy } = this.#options;
    const { demand, uid, priority } = pod;
    const name = nameOf(args);
    if (demand === undefined) {
      throw new SchedulerError('BIND_FAILED', { pod: name, node: args.Node, reason: pod.problem ?? 'it asks for nothing.' });
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

  /** The UID goes along, so that a pod of the same name that came later is not meant. The annotation becomes the pod's, in one step. */
  async #post({ PodNamespace, PodName, PodUID, Node }: BindArgs, assignment: Assignment): Promise<void> {
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
    logger.warn(figures, 'the outcome of a binding is not known; the pod is asked');
    void this.#settle(args);
    throw new SchedulerError('BIND_UNKNOWN', figures);
  }

  /** Asks until the pod says where it is, or cannot be bound any more. Nobody else gets the slots before. */
  async #settle(args: BindArgs): Promise<void> {
    const { cluster } = this.#options;
    const { signal } = this.#end;
    const latest = performance.now() + LATEST;
    for (let attempt = 0; cluster.isReserved(args.PodUID) && !signal.aborted; attempt++) {
      const asked = performance.now();
      const pod = await this.#fetch(args).catch((error: Error) => (error instanceof SchedulerError ? ('gone' as const) : undefined));
      // What was heard meanwhile is newer: a pod that was deleted must not come back.
      if (!cluster.isReserved(args.PodUID)) return;
      if (pod === 'gone') cluster.release(args.PodUID);
      else if (pod?.node !== undefined) cluster.putPod(pod);
      // The API server binds no pod that is being deleted.
      else if (pod && (asked > latest || pod.leavesAt !== undefined)) cluster.release(args.PodUID);
      else await sleep(Math.min(LONGEST_PAUSE, 500 * 2 ** attempt), undefined, { signal }).catch(() => {});
    }
  }

  async #fetch(args: BindArgs): Promise<PodRecord> {
    const path = `/api/v1/namespaces/${args.PodNamespace}/pods/${args.PodName}`;
    const pod = await this.#options.api.request<V1Pod>({ path, timeout: BINDING_TIMEOUT }).catch((error: ApiError) => {
      throw error.status === NOT_FOUND ? new SchedulerError('POD_GONE', { pod: nameOf(args) }) : error;
    });
    const record = readPod(pod);
    if (record === undefined) throw new SchedulerError('POD_ASKS_NOTHING', { pod: nameOf(args) });
    if (record.uid !== args.PodUID) throw new SchedulerError('POD_REPLACED', { pod: nameOf(args) });
    return record;
  }
}

export function assignmentFrom({ needs }: Demand, placement: Placement): Assignment {
  const assigned = (index: number, slots: number): AssignedGpu[] => (placement[index] ?? []).map(({ uuid }) => ({ gpu: uuid, slots }));
  return { version: 1, containers: Object.fromEntries(needs.map(({ container, slots }, index) => [container, assigned(index, slots)])) };
}

/** A refusal happened before anything did; a server's own failure, or silence, says nothing. */
function isDefinite({ status }: ApiError): boolean {
  return status !== undefined && status >= 400 && status < 500 && status !== CONFLICT;
}

function nameOf({ PodNamespace, PodName }: BindArgs): string {
  return `${PodNamespace}/${PodName}`;
}
