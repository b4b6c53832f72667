import type { V1Pod } from '@kubernetes/client-node';
import { type Arrival, type Assignment, onlyGpu } from '@nvidia-virtual/kube-common/assignment';
import { assignmentOf } from '@nvidia-virtual/kube-common/holding';
import { RetryTimer } from '@nvidia-virtual/service/backoff';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuNode } from '../node.js';
import { targetOf } from './binding.js';
import { isOver, type NodePods } from './node-pods.js';
import type { PodEvents } from './pod-events.js';
import { kubeletUid } from './pod-identity.js';

interface PodMovesOptions {
  readonly node: GpuNode;
  readonly pods: NodePods;
  readonly events: Pick<PodEvents, 'note' | 'warn'>;
  readonly logger: Logger;
  /** Milliseconds until the first retry. */
  readonly retryMs?: number;
}

/** Where an allocation is to be, and when that is tried again. */
interface Attempt {
  readonly gpu: string;
  readonly retry: RetryTimer;
}

/** Debounce of changes. */
const TOGETHER_MS = 100;
/** Each attempt holds up the programs for up to 5 s. */
const RETRY_MS = 5000;
const LONGEST_RETRY_MS = 60_000;

/**
 * Moves the allocations of pods to the GPU that our scheduler has assigned to them since. What is
 * refused is tried again. Before the first complete list of pods, nothing changes.
 */
export class PodMoves {
  readonly #options: PodMovesOptions;
  /** By id of the allocation. */
  readonly #attempts = new Map<string, Attempt>();
  #soon: NodeJS.Timeout | undefined;

  constructor(options: PodMovesOptions) {
    this.#options = options;
    options.pods.on('changed', this.#lookSoon);
    options.node.on('changed', this.#lookSoon);
  }

  end(): void {
    this.#options.pods.off('changed', this.#lookSoon);
    this.#options.node.off('changed', this.#lookSoon);
    clearTimeout(this.#soon);
    for (const id of this.#attempts.keys()) this.#forget(id);
  }

  /** Moving pods whose programs have all left the former GPU, by the scheduler's latest wish. */
  get arrivals(): Arrival[] {
    const { pods } = this.#options;
    if (!pods.synced) return [];
    return pods.all.flatMap((pod) => {
      const { former, move = 0 } = assignmentOf(pod) ?? {};
      const uid = pod.metadata?.uid;
      if (former === undefined || uid === undefined || isOver(pod)) return [];
      return this.#hasArrived(pod) ? { pod: uid, move } : [];
    });
  }

  #hasArrived(pod: V1Pod): boolean {
    const uid = kubeletUid(pod);
    const gpu = assignedGpu(assignmentOf(pod));
    return this.#options.node.promised
      .filter(({ owner }) => owner?.podUid === uid)
      .every(({ gpus, moving }) => gpus[0]?.toLowerCase() === gpu && moving === undefined);
  }

  readonly #lookSoon = () => {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      this.#look();
    }, TOGETHER_MS).unref();
  };

  #look(): void {
    const { node, pods } = this.#options;
    if (!pods.synced) return;
    const { allocations } = node;
    const ids = new Set(allocations.map(({ id }) => id));
    for (const id of this.#attempts.keys()) if (!ids.has(id)) this.#forget(id);
    for (const allocation of allocations) {
      const pod = this.#podOf(allocation);
      if (pod && !isOver(pod)) this.#follow(allocation, assignedGpu(assignmentOf(pod)));
    }
  }

  #podOf({ specification: { owner } }: Allocation): V1Pod | undefined {
    return owner && this.#options.pods.find(owner.podUid);
  }

  #follow(allocation: Allocation, gpu: string | undefined): void {
    const { gpus, moving } = allocation.specification;
    const attempt = this.#attempts.get(allocation.id);
    if (gpu === undefined || gpus.length !== 1 || gpus[0]?.toLowerCase() === gpu) {
      if (moving === undefined) this.#forget(allocation.id);
    } else if (attempt?.gpu !== gpu) {
      this.#forget(allocation.id);
      const retry = new RetryTimer(() => void this.#try(allocation, next), {
        first: this.#options.retryMs ?? RETRY_MS,
        longest: LONGEST_RETRY_MS,
      });
      const next = { gpu, retry };
      this.#attempts.set(allocation.id, next);
      void this.#try(allocation, next);
    }
  }

  async #try(allocation: Allocation, attempt: Attempt): Promise<void> {
    const { node, logger } = this.#options;
    const pod = this.#podOf(allocation);
    if (pod && assignedGpu(assignmentOf(pod)) !== attempt.gpu) return;
    try {
      // An earlier attempt, maybe of an earlier gpu-proxy, ends first.
      if (allocation.specification.moving !== undefined) return attempt.retry.schedule();
      await node.move(allocation, attempt.gpu, 'pod');
      this.#tell(allocation);
    } catch (error) {
      if (this.#attempts.get(allocation.id) !== attempt) return;
      if (error instanceof ProxyError) this.#refuse(allocation, attempt, error);
      else logger.error({ allocation: allocation.id }, (error as Error).message);
      attempt.retry.schedule();
    }
  }

  #tell(allocation: Allocation): void {
    const { events, node } = this.#options;
    const pod = this.#podOf(allocation);
    const { owner, gpus } = allocation.specification;
    const { index } = node.gpus.find(({ uuid }) => uuid === gpus[0]) ?? {};
    const sentence = `Container ${owner?.container} is on GPU ${index} (${gpus[0]}) now.`;
    if (pod) events.note(targetOf(pod), 'GpuMoved', sentence);
  }

  #refuse(allocation: Allocation, { gpu }: Attempt, { message }: ProxyError): void {
    const { events } = this.#options;
    const pod = this.#podOf(allocation);
    if (!pod) return;
    const { name, namespace } = pod.metadata ?? {};
    const back = assignmentOf(pod)?.former ?? allocation.specification.gpus[0];
    const sentence =
      `${message} The node tries again, and the pod holds slots of both GPUs. To stop that: ` +
      `\`kubectl gpu-usage move ${name} -n ${namespace} --gpu ${back}\`.`;
    events.warn(targetOf(pod), 'GpuNotMoved', sentence, `GpuNotMoved ${allocation.id} ${gpu}`);
  }

  #forget(id: string): void {
    this.#attempts.get(id)?.retry.cancel();
    this.#attempts.delete(id);
  }
}

/** In lower case. Undefined: pods with several GPUs do not move. */
function assignedGpu(assignment: Assignment | undefined): string | undefined {
  return assignment && onlyGpu(assignment)?.toLowerCase();
}
