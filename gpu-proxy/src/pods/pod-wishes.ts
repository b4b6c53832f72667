import type { V1Pod } from '@kubernetes/client-node';
import { RetryTimer } from '@nvidia-virtual/service/backoff';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuNode } from '../node.js';
import { isOver, type NodePods } from './node-pods.js';

/** Reads the wishes of pods about their allocations, and carries them out. */
interface Wishes<Wish> {
  /** The wanted change of the allocation; undefined: it is as its pod wants it. */
  of(allocation: Allocation, pod: V1Pod): Wish | undefined;
  /** @returns false if it must be tried again. @throws ProxyError it is refused, and tried again */
  carryOut(allocation: Allocation, pod: V1Pod, wish: Wish): Promise<boolean>;
  /** Tells the user of the pod. */
  refused(allocation: Allocation, pod: V1Pod, wish: Wish, error: ProxyError): void;
}

interface PodWishesOptions<Wish> {
  readonly node: GpuNode;
  readonly pods: NodePods;
  readonly logger: Logger;
  readonly wishes: Wishes<Wish>;
}

interface Attempt<Wish> {
  readonly wish: Wish;
  readonly retry: RetryTimer;
}

/** Debounce of changes. */
const TOGETHER_MS = 100;
/** Each attempt holds up the programs for up to 5 s. */
const RETRY_MS = 5000;
const LONGEST_RETRY_MS = 60_000;

/**
 * Carries out the wishes of pods about their allocations. Each allocation has one attempt at a
 * time, so a tenant whose wishes change quickly cannot delay others. A refused wish is retried as
 * long as the pod has it. Before the first complete list of pods, nothing changes.
 */
export class PodWishes<Wish extends string | boolean> {
  readonly #options: PodWishesOptions<Wish>;
  /** Keyed by the id of the allocation. */
  readonly #attempts = new Map<string, Attempt<Wish>>();
  /** Ids of the allocations whose attempt is being carried out. */
  readonly #running = new Set<string>();
  #soon: NodeJS.Timeout | undefined;

  constructor(options: PodWishesOptions<Wish>) {
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
    for (const allocation of allocations) this.#follow(allocation);
  }

  #podOf({ specification: { owner } }: Allocation): V1Pod | undefined {
    return owner && this.#options.pods.find(owner.podUid);
  }

  #follow(allocation: Allocation): void {
    const { id } = allocation;
    const pod = this.#podOf(allocation);
    if (!pod || isOver(pod) || this.#running.has(id)) return;
    const wish = this.#options.wishes.of(allocation, pod);
    if (this.#attempts.get(id)?.wish === wish) return;
    this.#forget(id);
    if (wish === undefined) return;
    const retry = new RetryTimer(() => void this.#try(allocation, attempt), {
      first: RETRY_MS,
      longest: LONGEST_RETRY_MS,
    });
    const attempt = { wish, retry };
    this.#attempts.set(id, attempt);
    void this.#try(allocation, attempt);
  }

  async #try(allocation: Allocation, attempt: Attempt<Wish>): Promise<void> {
    const { id } = allocation;
    const pod = this.#podOf(allocation);
    if (!pod) return this.#forget(id);
    const { wishes, logger } = this.#options;
    let done = false;
    let refusal: unknown;
    this.#running.add(id);
    try {
      done = await wishes.carryOut(allocation, pod, attempt.wish);
    } catch (error) {
      refusal = error;
    }
    this.#running.delete(id);
    if (this.#attempts.get(id) !== attempt) return; // the allocation has ended
    if (done) {
      this.#forget(id);
      this.#lookSoon(); // its pod may want something else now
      return;
    }
    this.#follow(allocation);
    if (this.#attempts.get(id) !== attempt) return;
    if (refusal instanceof ProxyError) wishes.refused(allocation, pod, attempt.wish, refusal);
    else if (refusal) logger.error({ allocation: id }, (refusal as Error).message);
    attempt.retry.schedule();
  }

  #forget(id: string): void {
    this.#attempts.get(id)?.retry.cancel();
    this.#attempts.delete(id);
  }
}
