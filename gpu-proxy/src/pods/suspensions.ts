import type { V1Pod } from '@kubernetes/client-node';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { asksToSuspend } from '@nvidia-virtual/kube-common/suspended';
import { RetryTimer } from '@nvidia-virtual/service/backoff';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuNode } from '../node.js';
import { targetOf } from './binding.js';
import { isOver, type NodePods } from './node-pods.js';
import type { PodEvents } from './pod-events.js';

interface SuspensionsOptions {
  readonly node: GpuNode;
  readonly pods: NodePods;
  readonly events: Pick<PodEvents, 'warn'>;
  readonly logger: Logger;
  /** Milliseconds until the first retry. */
  readonly retryMs?: number;
}

/** What an allocation is to become, and when that is tried again. */
interface Attempt {
  readonly suspend: boolean;
  readonly retry: RetryTimer;
}

/** Debounce of changes. */
const TOGETHER_MS = 100;
/** Each attempt holds up the programs for up to 5 s. */
const RETRY_MS = 5000;
const LONGEST_RETRY_MS = 60_000;

/**
 * Suspends the allocations of pods that have the annotation for it, and resumes them without it.
 * What is refused is tried again. Before the first complete list of pods, nothing changes.
 */
export class Suspensions {
  readonly #options: SuspensionsOptions;
  /** By id of the allocation. */
  readonly #attempts = new Map<string, Attempt>();
  #soon: NodeJS.Timeout | undefined;

  constructor(options: SuspensionsOptions) {
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
      const { owner } = allocation.specification;
      const pod = owner && pods.find(owner.podUid);
      if (pod && !isOver(pod)) this.#follow(allocation, pod);
    }
  }

  #follow(allocation: Allocation, pod: V1Pod): void {
    const suspend = asksToSuspend(pod);
    if (suspend === isSuspendedByPod(allocation)) {
      allocation.suspensionRefused = undefined;
      this.#forget(allocation.id);
    } else if (this.#attempts.get(allocation.id)?.suspend !== suspend) {
      this.#forget(allocation.id);
      const retry = new RetryTimer(() => void this.#try(allocation, attempt), {
        first: this.#options.retryMs ?? RETRY_MS,
        longest: LONGEST_RETRY_MS,
      });
      const attempt = { suspend, retry };
      this.#attempts.set(allocation.id, attempt);
      void this.#try(allocation, attempt);
    }
  }

  async #try(allocation: Allocation, attempt: Attempt): Promise<void> {
    const { node, logger } = this.#options;
    try {
      await (attempt.suspend ? node.suspend(allocation, 'pod') : node.resume(allocation, 'pod'));
      allocation.suspensionRefused = undefined;
    } catch (error) {
      if (this.#attempts.get(allocation.id) !== attempt) return;
      if (error instanceof ProxyError) this.#refuse(allocation, attempt, error);
      else logger.error({ allocation: allocation.id }, (error as Error).message);
      attempt.retry.schedule();
    }
  }

  #refuse(allocation: Allocation, { suspend }: Attempt, { message }: ProxyError): void {
    const { node, pods, events } = this.#options;
    const { owner } = allocation.specification;
    const pod = owner && pods.find(owner.podUid);
    allocation.suspensionRefused = message;
    node.emit('changed');
    if (!pod) return;
    const reason = suspend ? 'GpuNotSuspended' : 'GpuNotResumed';
    const again = `The node tries again as long as ${ANNOTATION.suspended} stays as it is.`;
    events.warn(targetOf(pod), reason, `${message} ${again}`, `${reason} ${allocation.id}`);
  }

  #forget(id: string): void {
    this.#attempts.get(id)?.retry.cancel();
    this.#attempts.delete(id);
  }
}

function isSuspendedByPod({ specification: { suspendedBy = [] } }: Allocation): boolean {
  return suspendedBy.includes('pod');
}
