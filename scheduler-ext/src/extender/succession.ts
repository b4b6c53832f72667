import { setTimeout as sleep } from 'node:timers/promises';
import { type Leadership, SUCCESSION_MS } from './leadership.js';

/**
 * A kube-scheduler that lost its lease exits, and takes longer than this to start and lead again.
 * In milliseconds.
 */
const RESTART_MS = 500;

/**
 * Lets the first request of each leader wait for the bindings of the former one. A terminating
 * kube-scheduler releases its lease at once, so bindings of its extender can be in progress. This
 * process outlives the kube-scheduler beside it, which may lead again after another one did.
 */
export class Succession {
  readonly #leadership: Pick<Leadership, 'leader'>;
  readonly #pause: () => Promise<void>;
  #leader: string | undefined;
  /** Time of the latest request, by performance.now(). */
  #latest = Number.NEGATIVE_INFINITY;
  #waited: Promise<void> | undefined;

  /** @param pause with the read of the Lease, shorter than kube-scheduler waits for an answer */
  constructor(leadership: Pick<Leadership, 'leader'>, pause = () => sleep<void>(SUCCESSION_MS)) {
    this.#leadership = leadership;
    this.#pause = pause;
  }

  /** Call at each request of the leader. */
  async wait(): Promise<void> {
    const isRecent = performance.now() - this.#latest < RESTART_MS;
    if (!isRecent) this.#waited = this.#waitIfNew();
    this.#latest = performance.now();
    await this.#waited;
    this.#latest = performance.now();
  }

  async #waitIfNew(): Promise<void> {
    const leader = await this.#leadership.leader();
    if (leader !== undefined && leader === this.#leader) return;
    await this.#pause();
    this.#leader = leader ?? this.#leader;
  }
}
