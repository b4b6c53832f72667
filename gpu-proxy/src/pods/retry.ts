import type { EventEmitter } from 'node:events';
import { Backoff } from '@nvidia-virtual/service/backoff';
import { ProxyError } from '@nvidia-virtual/service/errors';

export interface RetryOptions {
  /** In milliseconds as Date.now() has them. */
  readonly deadline: number;
  /** Its event `changed` ends the delay before the next attempt. */
  readonly source: EventEmitter<{ changed: [] }>;
  /** Called once, when the first attempt failed. */
  failed(reason: ProxyError): void;
}

/**
 * Retries with backoff until the attempt succeeds. Retries ProxyErrors only.
 * @throws the last error after the deadline
 */
export async function retryUntil<T>(
  { deadline, source, failed }: RetryOptions,
  attempt: () => T | Promise<T>,
): Promise<T> {
  const backoff = new Backoff({ first: 50, longest: 1000 });
  for (let first = true; ; first = false) {
    try {
      return await attempt();
    } catch (error) {
      const delay = backoff.next();
      if (!(error instanceof ProxyError) || Date.now() + delay > deadline) throw error;
      if (first) failed(error);
      await pause(delay, source);
    }
  }
}

/** Whether the work ends within `ms` milliseconds. @throws what the work throws by then */
export async function endsBefore(ms: number, work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false).unref();
  });
  try {
    return await Promise.race([work.then(() => true), patience]);
  } finally {
    clearTimeout(timer);
  }
}

function pause(ms: number, source: EventEmitter<{ changed: [] }>): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      source.off('changed', end);
      // Many may wait for the same event: they must not all retry in one turn of the loop.
      setTimeout(resolve, 1).unref();
    };
    const timer = setTimeout(end, ms).unref();
    source.once('changed', end);
  });
}
