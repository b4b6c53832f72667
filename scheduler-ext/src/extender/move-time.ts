import type { PodRecord } from '../cluster/pod.js';

interface Spent {
  /** Milliseconds for which the pod held slots of two GPUs, less what it has regained since. */
  time: number;
  /** When `time` was updated, by performance.now(). */
  at: number;
  /** The `time` at which the present move is overdue. */
  limit: number;
  /** The number of the move that was found overdue. */
  overdue?: number | undefined;
}

/** Rest of a pod, as a multiple of the time for which it held two GPUs. */
const REST = 6;

/**
 * Limits how long pods hold slots of two GPUs, because a tenant can ask for moves that never end,
 * for one after another. A pod that moves spends its time, and regains it slowly while it stays.
 */
export class MoveTime {
  readonly #limit: number;
  /** Keyed by UID. */
  readonly #spent = new Map<string, Spent>();

  /** @param limit milliseconds after which a move is overdue */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Requires that it is called repeatedly for each pod. */
  note({ uid, assignment }: PodRecord): void {
    const moves = assignment?.former !== undefined;
    const now = performance.now();
    const known = this.#spent.get(uid);
    if (known === undefined) {
      if (moves) this.#spent.set(uid, { time: 0, at: now, limit: this.#limit });
      return;
    }
    const passed = now - known.at;
    known.at = now;
    if (moves) {
      known.time += passed;
      // It goes back, and has the same time for that.
      if (known.overdue !== undefined && known.overdue !== assignment.move) {
        known.limit = known.time + this.#limit;
        known.overdue = undefined;
      }
    } else {
      known.time = Math.min(known.time, this.#limit) - passed / REST;
      known.limit = this.#limit;
      known.overdue = undefined;
      if (known.time <= 0) this.#spent.delete(uid);
    }
  }

  /** Whether the pod must go back. */
  isOverdue(uid: string): boolean {
    const { time, limit } = this.#spent.get(uid) ?? { time: 0, limit: 0 };
    return time > limit;
  }

  /** The pod is told to go back. */
  noteOverdue({ uid, assignment }: PodRecord): void {
    const spent = this.#spent.get(uid);
    if (spent) spent.overdue = assignment?.move;
  }

  /** Whether the pod must stay for now, or keep the direction of its move. */
  rests({ uid, assignment }: PodRecord): boolean {
    const { time = 0 } = this.#spent.get(uid) ?? {};
    return time > (assignment?.former === undefined ? this.#limit / 2 : this.#limit);
  }

  /** Forgets pods that are gone. */
  retain(isPresent: (uid: string) => boolean): void {
    for (const uid of this.#spent.keys()) if (!isPresent(uid)) this.#spent.delete(uid);
  }
}
