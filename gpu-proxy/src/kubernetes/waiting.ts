import type { EventEmitter } from 'node:events';
import { ProxyError } from '../errors.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

export interface Patience {
  /** In milliseconds as Date.now() has them. */
  readonly until: number;
  /** After what it is worth trying again at once. */
  readonly news: EventEmitter<{ changed: [] }>;
  /** Is told once, when the first attempt failed: what it waits for. */
  waits(reason: ProxyError): void;
}

/** Tries until it works; throws what failed last when patience ends. Only ProxyErrors are worth another attempt. */
export async function tryPatiently<T>({ until, news, waits }: Patience, attempt: () => T | Promise<T>): Promise<T> {
  for (let pauseMs = FIRST_PAUSE_MS, told = false; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ProxyError) || Date.now() + pauseMs > until) throw error;
      if (!told) waits(error);
      told = true;
      await pause(pauseMs, news);
    }
  }
}

/** Whether it came to its end in so many milliseconds; what fails by then fails here. */
export async function endsWithin(ms: number, work: Promise<void>): Promise<boolean> {
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

function pause(ms: number, news: EventEmitter<{ changed: [] }>): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      news.off('changed', end);
      // What many heard at once must not ask in one moment again and again.
      setTimeout(resolve, 1).unref();
    };
    // Who ends waits for nobody.
    const timer = setTimeout(end, ms).unref();
    news.once('changed', end);
  });
}
